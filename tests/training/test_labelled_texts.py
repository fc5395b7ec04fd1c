"""A user's file: what is read, and what is refused, with its line and the remedy."""

import csv
import gzip
import json
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.files.rows import MAX_LINE
from heedful.text.invisible import is_blank
from heedful.training.errors import DataError
from heedful.training.labelled_texts import Reading, Row, read, same

GOOD = "text,label\ngood film,pos\nfine film,pos\nbad film,neg\npoor film,neg\n"
ZIPPED = gzip.compress(GOOD.encode(), mtime=0)  # the same bytes in each process of the tests


def write(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)
filled = cells.filter(lambda text: not is_blank(text))


@given(st.lists(st.tuples(filled, filled), min_size=4, max_size=8, unique_by=same))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    labels = ("x", "y")
    folder = tmp_path_factory.mktemp("table")
    records = [(a, labels[i % 2], b) for i, (a, b) in enumerate(rows)]
    expected = [((a, b), label) for a, label, b in records]
    for suffix, separator in ((".csv", ","), (".tsv", "\t")):
        out = StringIO(newline="")
        writer = csv.writer(out, delimiter=separator)
        writer.writerows([("first", "label", "second"), *records])
        found = read(write(folder, f"t{suffix}", out.getvalue()), ("first", "second"), "label")
        assert [(row.texts, row.label) for row in found] == expected
    lines = [json.dumps({"first": a, "label": label, "second": b}) for a, label, b in records]
    found = read(write(folder, "t.jsonl", "\n".join(lines)), ("first", "second"), "label")
    assert [(row.texts, row.label) for row in found] == expected
    assert [row.line for row in found] == list(range(1, len(expected) + 1))


def test_rows_know_where_they_begin(tmp_path: Path) -> None:
    content = '\ufefflabel,text\r\na,"two\nlines"\r\na,one\r\n b ,x\r\nb,y\r\n\r\n'
    rows = read(write(tmp_path, "t.csv", content), ("text",), "label")
    assert rows == [
        Row(2, ("two\nlines",), "a"),
        Row(4, ("one",), "a"),
        Row(5, ("x",), "b"),
        Row(6, ("y",), "b"),
    ]


def test_a_cell_is_as_long_as_a_line_may_be(tmp_path: Path) -> None:
    long = "a " * 100_000
    rows = read(write(tmp_path, "t.csv", f'{GOOD}"{long}",pos\n'), ("text",), "label")
    assert rows[-1] == Row(6, (long,), "pos")


def test_labels_of_json_may_be_numbers(tmp_path: Path) -> None:
    content = "".join(f'{{"t": "x {i}", "stars": {i % 2}}}\n' for i in range(4))
    rows = read(write(tmp_path, "t.jsonl", content), ("t",), "stars")
    assert [row.label for row in rows] == ["0", "1", "0", "1"]


@pytest.mark.parametrize(
    ("labels", "spelled"),
    [
        ([True, False, True, False], ["true", "false", "true", "false"]),
        ([1, 0, 1, 0], ["1", "0", "1", "0"]),
        ([1.0, 0.0, 1.0, 0.0], ["1", "0", "1", "0"]),
        (["x", " y", "x\t", "y "], ["x", "y", "x", "y"]),
    ],
)
def test_a_label_has_one_spelling_in_every_format(
    tmp_path: Path, labels: list[object], spelled: list[str]
) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", "b", "c", "d", "e"], "label": [*labels, None]})
    whole = pandas.DataFrame({"text": ["a", "b", "c", "d"], "label": labels})
    excels = whole.to_csv(index=False, sep=";").replace("True", "TRUE").replace("False", "FALSE")
    for kind, table in (("nullable", frame), ("whole", whole)):
        table.to_csv(tmp_path / f"{kind}.csv", index=False)
        table.to_csv(tmp_path / f"{kind}.tsv", index=False, sep="\t")
        table.to_json(tmp_path / f"{kind}.jsonl", orient="records", lines=True)
        table.to_parquet(tmp_path / f"{kind}.parquet")
        table.convert_dtypes().to_parquet(tmp_path / f"{kind} of its type.parquet")
        table.to_excel(tmp_path / f"{kind}.xlsx", index=False)
    write(tmp_path, "Excel.csv", excels)
    for file in sorted(tmp_path.iterdir()):
        rows = read(file, ("text",), "label", Reading(drop_blank=True, say=lambda _: None))
        assert [row.label for row in rows] == spelled, file.name


@pytest.mark.parametrize("blank", ["", " ", "\u200b", "\u3164 \u2060", "\ufeff", "\x07"])
def test_a_cell_in_which_nothing_is_seen_is_empty(tmp_path: Path, blank: str) -> None:
    for column, row in (("label", f"ok,{blank}\n"), ("text", f"{blank},pos\n")):
        file = write(tmp_path, "t.csv", GOOD + row)
        with pytest.raises(DataError, match=rf"t\.csv:6: '{column}' is empty"):
            read(file, ("text",), "label")
        assert len(read(file, ("text",), "label", Reading(drop_blank=True))) == 4


@pytest.mark.parametrize("twin", ["Pos", "POS", "p\u200bos", "ｐｏｓ", "pos\ufe0f"])
def test_labels_that_look_the_same_are_named(tmp_path: Path, twin: str) -> None:
    said: list[str] = []
    content = f"{GOOD}so,{twin}\nit,{twin}\n"
    rows = read(write(tmp_path, "t.csv", content), ("text",), "label", Reading(say=said.append))
    assert len({row.label for row in rows}) == 3
    [warning] = said
    assert repr(twin) in warning
    assert "'pos'" in warning


def test_what_is_not_read_of_a_workbook_or_a_folder_is_said(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", "b", "c", "d"], "label": ["x", "x", "y", "y"]})
    said: list[str] = []
    with pandas.ExcelWriter(tmp_path / "t.xlsx") as book:
        for sheet in ("one", "two"):
            frame.to_excel(book, sheet_name=sheet, index=False)
    assert len(read(tmp_path / "t.xlsx", ("text",), "label", Reading(say=said.append))) == 4
    assert said == ["t.xlsx: of its sheets the first is read, not 'two'"]
    for name in ("x/1", "x/2", "y/1", "y/2", "loose", "x/deep/3"):
        file = tmp_path / "mail" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    assert len(read(tmp_path / "mail", ("text",), "label", Reading(say=said.append))) == 4
    assert said[1].startswith("mail: 2 files are not read")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.docx", GOOD, r"t\.docx: .*\.csv, \.tsv or \.jsonl"),
        ("t.parquet.gz", GOOD, r"t\.parquet\.gz: the file must end in"),
        ("t.csv.gz", ZIPPED[:-9], r"t\.csv\.gz is no whole gzip file"),
        ("t.csv", GOOD.replace("label", "class"), r"t\.csv:1: no column 'label'.*text, class"),
        ("t.csv", "", r"t\.csv holds no row"),
        ("t.csv", "text,label\n", r"t\.csv holds no row"),
        ("t.tsv", "text\tlabel\nso\tso\tneg\n", r"t\.tsv:2: 3 cells .* tab"),
        (
            "t.csv",
            GOOD + " ,neg\n,pos\n",
            r"t\.csv:6: 'text' is empty \(lines 6, 7\): fill .*or set --drop-blank",
        ),
        ("t.csv", GOOD + "\nok,neg\n", r"t\.csv:6: 'text' is empty"),
        ("t.csv", GOOD + ",neg\n" * 9, r"lines 6, 7, 8, 9, 10 and 4 more"),
        ("t.csv", GOOD.replace("neg", "pos"), r"t\.csv:2: every row has the label 'pos'"),
        ("t.csv", GOOD + "meh,so-so\n", r"t\.csv:6: label 'so-so' has one text only: add"),
        ("t.csv", GOOD + "meh,so-so\n" * 5, r"t\.csv:6: label 'so-so' has one text only: add"),
        ("t.csv", GOOD + "a,1\nb,2\n", r"t\.csv:6: labels '1', '2' have one text only: add"),
        (
            "t.csv",
            GOOD + "a,Pos\n",
            r"label 'Pos' has one text only \('Pos' and 'pos' are different labels\): add",
        ),
        (
            "t.csv",
            "text,label\n" + "".join(f"a {i},{i}.5\n" for i in range(40)),
            "holds 40 different numbers, .*fit Ridge",
        ),
        (
            "t.csv",
            "a,b\n",
            r"no column 'text' and no column 'label': the header names a, b; set --text-column",
        ),
        (
            "t.csv",
            "Text,labels\n",
            r"names Text, labels; did you mean 'Text'\?; did you mean 'labels'\?; set",
        ),
        ("t.csv", "good film,pos\nbad film,neg\n", r"t\.csv:1: no column .* or --no-header and"),
        (
            "t.csv",
            GOOD + "good  film ,neg\n",
            r"t\.csv:2: the same text is labelled 'neg' and 'pos' "
            r"\(lines 2, 6\): give equal texts one label, or set --drop-conflicts",
        ),
        (
            "t.csv",
            GOOD.encode() + b"caf\xe9,pos\n",
            r"t\.csv:6: byte 0xe9 is not UTF-8: save .*--encoding cp1252",
        ),
        ("t.csv", GOOD + 'a,pos\n"a "b" c",pos\n', r"t\.csv:7: a quote is opened"),
        ("t.csv", GOOD + '"' + "open so\n" * (MAX_LINE // 7), r"t\.csv:6: a cell is longer than"),
        ("t.csv", GOOD + "so\rso,neg\n", r"t\.csv:6: a carriage return stands outside quotes"),
        ("t.jsonl", '{"text": "a"}\n', r"t\.jsonl:1: no 'label': the object holds text"),
        ("t.jsonl", '{"text": "a", "label": 2.5}\n', r"t\.jsonl:1: .* a string or an integer$"),
        (
            "t.jsonl",
            '{"text": "a", "label": ["b"]}\n',
            r"t\.jsonl:1: .* one string: set --multi-label",
        ),
        ("t.jsonl", '{"text": null, "label": "b"}\n', r"t\.jsonl:1: 'text' is empty"),
        (
            "t.jsonl",
            '{"text": "\\ud83d", "label": "b"}\n{"text": "x", "label": "b"}\n',
            r"t\.jsonl:1: holds half of a surrogate pair",
        ),
        ("t.tsv", "text\tlabel\na\0b\tx\nb\tx\nc\ty\nd\ty\n", r"t\.tsv:2: holds a NUL"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, name: str, content: str | bytes, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        read(write(tmp_path, name, content), ("text",), "label")


def test_all_faults_are_in_one_message(tmp_path: Path) -> None:
    content = GOOD + "so, so,neg\nok,\n,pos\ngood film,neg\nmeh,Neg\nfine,odd\n"
    with pytest.raises(DataError) as caught:
        read(write(tmp_path, "t.csv", content), ("text",), "label")
    first, *faults = str(caught.value).split("\n- ")
    assert first == "t.csv: 5 faults:"
    assert [fault.partition(": ")[2][:24] for fault in faults] == [
        "3 cells where the header",
        "'text' is empty (lines 8",
        "'label' is empty (lines ",
        "the same text is labelle",
        "labels 'Neg', 'odd' have",
    ]


@pytest.mark.parametrize(
    ("content", "reading"),
    [
        (GOOD.replace(",", ";"), Reading()),
        (GOOD.replace(",", "|"), Reading()),
        (GOOD.replace("text,label\n", "").replace("\n", "\r\n"), Reading(header=False)),
        (GOOD.replace(",", "^"), Reading(delimiter="^")),
        ("\ufeff" + GOOD, Reading()),
        (GOOD.encode("utf-16"), Reading(encoding="utf-16")),
        (GOOD + " ,pos\nok,\n", Reading(drop_blank=True)),
        (GOOD + "so,pos\nso,neg\n", Reading(drop_conflicts=True)),
    ],
)
def test_what_excel_and_people_write_is_read(
    tmp_path: Path, content: str | bytes, reading: Reading
) -> None:
    said: list[str] = []
    names = ("text", "label") if reading.header else ("1", "2")
    file = write(tmp_path, "t.csv", content)
    rows = read(file, names[:1], names[1], replace(reading, say=said.append))
    assert [(*row.texts, row.label) for row in rows] == [
        tuple(line.split(",")) for line in GOOD.splitlines()[1:]
    ]
    expected = (
        [len(content.splitlines()) - 5] if reading.drop_blank or reading.drop_conflicts else []
    )
    assert [int(line.split()[1]) for line in said] == expected


@pytest.mark.parametrize("name", ["T.CSV", "t.csv.gz", "T.Tsv.GZ", "t.jsonl.gz", "T.JSONL"])
def test_suffixes_in_capitals_and_gzipped_files(tmp_path: Path, name: str) -> None:
    content = GOOD
    if "jsonl" in name.lower():
        records = [
            dict(zip(("text", "label"), line.split(","), strict=True)) for line in GOOD.splitlines()
        ]
        content = "".join(json.dumps(record) + "\n" for record in records[1:])
    elif "tsv" in name.lower():
        content = GOOD.replace(",", "\t")
    zipped = name.lower().endswith(".gz")
    file = write(tmp_path, name, gzip.compress(content.encode()) if zipped else content)
    plain = read(write(tmp_path, "plain.csv", GOOD), ("text",), "label")
    assert [row.texts for row in read(file, ("text",), "label")] == [row.texts for row in plain]


def test_texts_that_have_none_of_several_labels(tmp_path: Path) -> None:
    """To leave such rows out, as the message alone advised, makes every label look more frequent."""
    file = write(tmp_path, "t.csv", GOOD + "ok,\n")
    with pytest.raises(
        DataError, match=r"'label' is empty .*\(with 'none' where a text has no label"
    ):
        read(file, ("text",), "label", Reading(separator=";"))


def test_a_folder_of_texts(tmp_path: Path) -> None:
    for label, texts in {"pos": ("good", "fine"), "neg": ("bad", "poor")}.items():
        (tmp_path / "mail" / label).mkdir(parents=True)
        for number, text in enumerate(texts):
            (tmp_path / "mail" / label / f"{number}.txt").write_text(text)
    rows = read(tmp_path / "mail", ("text",), "label")
    assert rows == [
        Row(1, ("bad",), "neg"),
        Row(2, ("poor",), "neg"),
        Row(3, ("good",), "pos"),
        Row(4, ("fine",), "pos"),
    ]
    for hidden in (".ipynb_checkpoints/0-checkpoint.txt", "pos/.DS_Store"):
        (tmp_path / "mail" / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / "mail" / hidden).write_bytes(b"\0\0\0\1Bud1")
    assert read(tmp_path / "mail", ("text",), "label") == rows
    (tmp_path / "mail" / "pos" / "2.txt").write_bytes("caf\xe9".encode("cp1252"))
    with pytest.raises(
        DataError, match=r"2\.txt: byte 3 is not UTF-8: .* or set --encoding cp1252"
    ):
        read(tmp_path / "mail", ("text",), "label")
    found = read(tmp_path / "mail", ("text",), "label", Reading(encoding="cp1252"))
    assert found == [*rows, Row(5, ("caf\xe9",), "pos")]
    with pytest.raises(DataError, match=r"\.txt: --encoding klingon does not fit"):
        read(tmp_path / "mail", ("text",), "label", Reading(encoding="klingon"))
    (tmp_path / "mail" / "pos" / "3.txt").write_text("poor\n")
    (tmp_path / "mail" / "pos" / "4.txt").write_text(" ")
    with pytest.raises(DataError, match=r"mail/pos/4\.txt: 'text' is empty \(files pos/4\.txt\)"):
        read(tmp_path / "mail", ("text",), "label", Reading(encoding="cp1252"))
    (tmp_path / "mail" / "pos" / "4.txt").unlink()
    said = r"mail/neg/1\.txt: the same text is .*\(files neg/1\.txt, pos/3\.txt\)"
    with pytest.raises(DataError, match=said):
        read(tmp_path / "mail", ("text",), "label", Reading(encoding="cp1252"))
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="none holds no text: put one file a text into a folder"):
        read(tmp_path / "none", ("text",), "label")


@pytest.mark.parametrize("suffix", [".parquet", ".xlsx"])
def test_tables_of_pandas(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"t{suffix}"
    if find_spec("pandas") is None:
        file.write_bytes(b"")
        with pytest.raises(DataError, match=r"pip install pandas pyarrow openpyxl, or save"):
            read(file, ("text",), "label")
        return
    pandas = pytest.importorskip("pandas")
    pytest.importorskip({".parquet": "pyarrow", ".xlsx": "openpyxl"}[suffix])
    frame = pandas.DataFrame({"text": ["a", "b", None, "c", "d"], "label": [1, 1, 2, 2, 2]})
    writer = {".parquet": "to_parquet", ".xlsx": "to_excel"}[suffix]
    getattr(frame, writer)(file, index=False)
    file = file.rename(tmp_path / f"T{suffix.upper()}")
    rows = read(file, ("text",), "label", Reading(drop_blank=True))
    # Rows of parquet are counted as `heedful embed` does.
    first = {".parquet": 1, ".xlsx": 2}[suffix]
    assert [(row.line - first, *row.texts, row.label) for row in rows] == [
        (0, "a", "1"),
        (1, "b", "1"),
        (3, "c", "2"),
        (4, "d", "2"),
    ]
    with pytest.raises(DataError, match=r"no column 'class': it has text, label"):
        read(file, ("text",), "class")


def test_a_sheet_without_a_header(tmp_path: Path) -> None:
    """The option was passed over: the first row named the columns, and "1" was none of them."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    file = tmp_path / "t.xlsx"
    cells = [["a", 1], ["b", 1], ["c", 2], ["d", 2]]
    pandas.DataFrame(cells).to_excel(file, header=False, index=False)
    rows = read(file, ("1",), "2", Reading(header=False))
    assert [(row.line, *row.texts, row.label) for row in rows] == [
        (line, text, str(label)) for line, (text, label) in enumerate(cells, 1)
    ]
    with pytest.raises(DataError, match="no column 'text': it has 1, 2"):
        read(file, ("text",), "2", Reading(header=False))
    twice = pandas.DataFrame(cells, columns=["text", "text"])
    twice.to_excel(file, index=False)
    with pytest.raises(DataError, match="two columns 'text': it has text, text: rename one"):
        read(file, ("text",), "text")


def test_lists_and_bytes_of_parquet_are_no_labels_and_texts(tmp_path: Path) -> None:
    """They became their spelling in Python: "['x' 'y']" was a label, "b'good'" a text."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    good = {"text": ["a", "b", "c", "d"], "label": ["x", "x", "y", "y"]}
    file = tmp_path / "t.parquet"
    lists = [["x", "y"], ["x"], ["x"], ["y"]]
    for column, values, said in (
        (
            "label",
            lists,
            r"t\.parquet:1: 'label' must be a string or a number; several .*--multi-label",
        ),
        ("text", [b"a", b"b", b"c", b"d"], r"t\.parquet:1: 'text' must be a string or a number$"),
    ):
        pandas.DataFrame({**good, column: values}).to_parquet(file)
        with pytest.raises(DataError, match=said):
            read(file, ("text",), "label")
    frame = pandas.DataFrame({**good, "label": [True, True, False, False]}).astype("category")
    frame.to_parquet(file)
    assert [row.label for row in read(file, ("text",), "label")] == ["true"] * 2 + ["false"] * 2


@pytest.mark.parametrize("suffix", [".parquet", ".xlsx"])
def test_tables_of_pandas_keep_what_looks_missing_and_name_what_is_broken(
    tmp_path: Path, suffix: str
) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip({".parquet": "pyarrow", ".xlsx": "openpyxl"}[suffix])
    file = tmp_path / f"t{suffix}"
    writer = {".parquet": "to_parquet", ".xlsx": "to_excel"}[suffix]
    words = pandas.DataFrame(
        {"text": ["n/a", "null", "NaN", "d", "e"], "label": ["None"] * 2 + ["Some"] * 2 + [""]}
    )
    getattr(words, writer)(file, index=False)
    rows = read(file, ("text",), "label", Reading(drop_blank=True))
    assert [(*row.texts, row.label) for row in rows] == [
        ("n/a", "None"),
        ("null", "None"),
        ("NaN", "Some"),
        ("d", "Some"),
    ]
    numbers = pandas.DataFrame({"text": list("abcde"), "label": [1, 1, 2, 2, None]})
    getattr(numbers.astype({"label": "Int64"}), writer)(file, index=False)
    rows = read(file, ("text",), "label", Reading(drop_blank=True))
    assert [row.label for row in rows] == ["1", "1", "2", "2"]
    for broken in (b"", b"no table", b"PK\x05\x06" + bytes(18)):  # the last is an empty archive
        file.write_bytes(broken)
        with pytest.raises(DataError, match=rf"t\{suffix} cannot be read as \{suffix}: save it"):
            read(file, ("text",), "label")
    with pytest.raises(DataError, match=r"none\..* cannot be read: .*No such file"):
        read(file.with_stem("none"), ("text",), "label")
