"""A user's file: what is read, and what is refused, with its line and the remedy."""

import gzip
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest

from heedful.training.errors import DataError
from heedful.training.labelled_texts import Reading, Row, read
from tests.writing import put

GOOD = "text,label\ngood film,pos\nfine film,pos\nbad film,neg\npoor film,neg\n"
ROWS = [tuple(line.split(",")) for line in GOOD.splitlines()[1:]]
# The same bytes in each process of the tests.
ZIPPED = gzip.compress(GOOD.replace(",", "\t").encode(), mtime=0)
FIRST = {".parquet": 1, ".xlsx": 2}
"""The number of the first row under the names of the columns."""


def labelled(file: Path, **reading: Any) -> list[tuple[str, ...]]:
    """The text and the label of each row."""
    options = {"say": lambda _: None, **reading}
    return [(*row.texts, row.label) for row in read(file, ("text",), "label", Reading(**options))]


def write_frame(file: Path, columns: Mapping[str, Any]) -> Path:
    frame = pandas.DataFrame(columns)
    frame.to_parquet(file) if file.suffix == ".parquet" else frame.to_excel(file, index=False)
    return file


def test_rows_know_where_they_begin(tmp_path: Path) -> None:
    long = "a " * 100_000  # a cell is as long as a line may be
    content = '\ufefflabel,text\r\na,"two\nlines"\r\na,one\r\n b ,x\r\nb,y\r\n'
    rows = read(put(tmp_path, "t.csv", f"{content}b,{long}\r\n\r\n"), ("text",), "label")
    texts = [(2, "two\nlines", "a"), (4, "one", "a"), (5, "x", "b"), (6, "y", "b"), (7, long, "b")]
    assert rows == [Row(line, (text,), label) for line, text, label in texts]


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
    put(tmp_path, "Excel.csv", excels)
    for file in sorted(tmp_path.iterdir()):
        assert [label for _, label in labelled(file, drop_blank=True)] == spelled, file.name


@pytest.mark.parametrize("blank", ["", " ", "\u200b", "\u3164 \u2060", "\ufeff", "\x07"])
def test_a_cell_in_which_nothing_is_seen_is_empty(tmp_path: Path, blank: str) -> None:
    for column, row in (("label", f"ok,{blank}\n"), ("text", f"{blank},pos\n")):
        file = put(tmp_path, "t.csv", GOOD + row)
        with pytest.raises(DataError, match=rf"t\.csv:6: '{column}' is empty"):
            labelled(file)
        assert len(labelled(file, drop_blank=True)) == 4


@pytest.mark.parametrize("twin", ["Pos", "POS", "p\u200bos", "ｐｏｓ", "pos\ufe0f"])
def test_labels_that_look_the_same_are_named(tmp_path: Path, twin: str) -> None:
    said: list[str] = []
    rows = labelled(put(tmp_path, "t.csv", f"{GOOD}so,{twin}\nit,{twin}\n"), say=said.append)
    assert len({label for _, label in rows}) == 3
    [warning] = said
    assert repr(twin) in warning
    assert "'pos'" in warning


NUMBERS = "text,label\n" + "".join(f"a {i},{i}.5\n" for i in range(40))
AMOUNTS = "text\tlabel\n" + "".join(f"a {i}\t${i},299.00\n" for i in range(40))
SAME = r"t\.csv:2: the same text is labelled 'neg' and 'pos' \(lines 2, 6\): .*--drop-conflicts"
REFUSED: list[tuple[str, str | bytes, str]] = [  # the last row of GOOD is in line 5
    ("t.csv", GOOD + " ,neg\n,pos\n", r":6: 'text' is empty \(lines 6, 7\): fill .* --drop-blank"),
    ("t.csv", GOOD + "\nok,neg\n", r"t\.csv:6: 'text' is empty"),
    ("t.csv", GOOD + "meh,so-so\n" * 5, r"t\.csv:6: label 'so-so' has one text only: add"),
    ("t.csv", GOOD + "a,Pos\n", r"one text only \('Pos' and 'pos' are different labels\): add"),
    ("t.csv", GOOD + "good  film ,neg\n", SAME),
    ("t.csv", GOOD.encode() + b"caf\xe9,pos\n", r":6: byte 0xe9 is not UTF-8: .*--encoding cp1252"),
    ("t.tsv.gz", ZIPPED[:-9], r"t\.tsv\.gz is a damaged or incomplete gzip file"),
    ("t.tsv", "text\tlabel\na\0b\tx\nb\tx\nc\ty\nd\ty\n", r"t\.tsv:2: holds a NUL"),
    ("t.docx", GOOD, r"t\.docx: .*give it one of \.csv, \.tsv, \.jsonl"),
    ("t.csv", "text,label\n", r"t\.csv holds no row"),
    ("t.csv", GOOD.replace("neg", "pos"), r"t\.csv:2: every row has the label 'pos'"),
    ("t.csv", NUMBERS, "holds 40 different numbers, .*fit Ridge"),
    ("t.tsv", AMOUNTS, "holds 40 different numbers, .*fit Ridge"),
    ("t.jsonl", '{"text": "a", "label": 2.5}\n', r"t\.jsonl:1: .* a string or an integer$"),
    ("t.jsonl", '{"text": "a", "label": ["b"]}\n', r"l:1: .* one string: set --multi-label"),
]


@pytest.mark.parametrize(("name", "content", "said"), REFUSED)
def test_what_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, name: str, content: str | bytes, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        labelled(put(tmp_path, name, content))


def test_all_faults_are_in_one_message(tmp_path: Path) -> None:
    content = GOOD + "so, so,neg\nok,\n,pos\ngood film,neg\nmeh,Neg\nfine,odd\n"
    with pytest.raises(DataError) as caught:
        labelled(put(tmp_path, "t.csv", content))
    first, *faults = str(caught.value).split("\n- ")
    assert first == "t.csv: 5 faults:"
    said = ("3 cells where", "'text' is empty", "'label' is empty", "the same text", "labels 'Neg'")
    for fault, kind in zip(faults, said, strict=True):
        assert kind in fault
    # To leave such rows out makes every other label look more frequent.
    with pytest.raises(DataError, match=r"\(with 'none' where a text has no label"):
        labelled(put(tmp_path, "t.csv", GOOD + "ok,\n"), separator=";")


@pytest.mark.parametrize(
    ("name", "content", "reading"),
    [
        ("t.csv", GOOD[11:].replace("\n", "\r\n"), Reading(header=False)),
        ("T.CSV", "\ufeff" + GOOD.replace(",", "^"), Reading(delimiter="^")),
        ("t.csv", GOOD.encode("utf-16"), Reading(encoding="utf-16")),
        ("t.csv", GOOD + " ,pos\nok,\n", Reading(drop_blank=True)),
        ("t.csv", GOOD + "so,pos\nso,neg\n", Reading(drop_conflicts=True)),
        ("T.Tsv.GZ", ZIPPED, Reading()),
    ],
)
def test_what_excel_and_people_write_is_read(
    tmp_path: Path, name: str, content: str | bytes, reading: Reading
) -> None:
    said: list[str] = []
    columns = ("text", "label") if reading.header else ("1", "2")
    file = put(tmp_path, name, content)
    rows = read(file, columns[:1], columns[1], replace(reading, say=said.append))
    assert [(*row.texts, row.label) for row in rows] == ROWS
    left_out = 2 if reading.drop_blank or reading.drop_conflicts else 0
    assert sum(int(line.split()[1]) for line in said) == left_out


def test_a_folder_of_texts(tmp_path: Path) -> None:
    mail = tmp_path / "mail"
    texts = {"neg/0.txt": "bad", "neg/1.txt": "poor", "pos/0.txt": "good", "pos/1.txt": "fine"}
    hidden = {".ipynb_checkpoints/0-checkpoint.txt": "bad", "pos/.DS_Store": "\0\0\0\1Bud1"}
    for name, text in (texts | hidden).items():
        put(mail, name, text)
    rows = [Row(i, (text,), name[:3]) for i, (name, text) in enumerate(texts.items(), 1)]
    assert read(mail, ("text",), "label") == rows
    said: list[str] = []
    for name in ("loose", "pos/deep/3"):
        put(mail, name, "so")
    labelled(mail, say=said.append)
    assert said[0].startswith("mail: 2 files are not read")

    put(mail, "pos/2.txt", "caf\xe9".encode("cp1252"))
    with pytest.raises(DataError, match=r"2\.txt: byte 3 is not UTF-8: .* set --encoding cp1252"):
        labelled(mail)
    assert labelled(mail, encoding="cp1252")[4:] == [("caf\xe9", "pos")]
    put(mail, "pos/3.txt", "poor\n")
    same_text = r"mail/neg/1\.txt: the same text is .*\(files neg/1\.txt, pos/3\.txt\)"
    with pytest.raises(DataError, match=same_text):
        labelled(mail, encoding="cp1252")
    put(mail, "pos/4.txt", " ")
    with pytest.raises(DataError, match=r"2 faults:\n.*'text' is empty \(files pos/4\.txt\)"):
        labelled(mail, encoding="cp1252")
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="none holds no text: put one file a text into a folder"):
        labelled(tmp_path / "none")


@pytest.mark.parametrize("suffix", FIRST)
def test_tables_of_pandas(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks missing is a text, and rows of parquet are counted as `heedful embed` does."""
    columns = {"text": ["a", "b", None, "c", "d"], "label": [1, 1, 2, 2, 2]}
    file = write_frame(tmp_path / f"t{suffix}", columns).rename(tmp_path / f"T{suffix.upper()}")
    rows = read(file, ("text",), "label", Reading(drop_blank=True))
    expected = [(0, "a", "1"), (1, "b", "1"), (3, "c", "2"), (4, "d", "2")]
    assert [(row.line - FIRST[suffix], *row.texts, row.label) for row in rows] == expected

    words, named = ["n/a", "null", "NaN", "d", "e"], ["None"] * 2 + ["Some"] * 2
    file = write_frame(tmp_path / f"t{suffix}", {"text": words, "label": [*named, ""]})
    assert labelled(file, drop_blank=True) == list(zip(words[:4], named, strict=True))
    for broken in (b"no table", b"PK\x05\x06" + bytes(18)):  # the last is an empty archive
        file.write_bytes(broken)
        with pytest.raises(DataError, match=rf"t\{suffix} cannot be read as \{suffix}: save it"):
            labelled(file)
    with pytest.raises(DataError, match=r"none\..* cannot be read: .*No such file"):
        labelled(file.with_stem("none"))
    monkeypatch.setitem(sys.modules, "pandas", None)  # an import of it raises
    with pytest.raises(DataError, match=r"pip install pandas pyarrow openpyxl, or save"):
        labelled(file)


def test_sheets_without_a_header_and_beside_others(tmp_path: Path) -> None:
    file = tmp_path / "t.xlsx"
    cells: list[tuple[str, int]] = [("a", 1), ("b", 1), ("c", 2), ("d", 2)]
    pandas.DataFrame(cells).to_excel(file, header=False, index=False)
    rows = read(file, ("1",), "2", Reading(header=False))
    assert rows == [Row(i, (text,), str(label)) for i, (text, label) in enumerate(cells, 1)]
    with pytest.raises(DataError, match="no column 'text': it has 1, 2"):
        read(file, ("text",), "2", Reading(header=False))
    pandas.DataFrame(cells, columns=["text", "text"]).to_excel(file, index=False)
    with pytest.raises(DataError, match="two columns 'text': it has text, text: rename one"):
        read(file, ("text",), "text")
    frame = pandas.DataFrame(cells, columns=["text", "label"])
    with pandas.ExcelWriter(file) as book:
        for sheet in ("one", "two"):
            frame.to_excel(book, sheet_name=sheet, index=False)
    said: list[str] = []
    assert len(labelled(file, say=said.append)) == 4
    assert said == ["t.xlsx: only its first sheet is read, not 'two'"]


def test_lists_and_bytes_of_parquet_are_no_labels_and_texts(tmp_path: Path) -> None:
    """They became their spelling in Python: "['x' 'y']" was a label, "b'good'" a text."""
    file = tmp_path / "t.parquet"
    good = {"text": ["a", "b", "c", "d"], "label": ["x", "x", "y", "y"]}
    lists = [["x", "y"], ["x"], ["x"], ["y"]]
    must = r"t\.parquet:1: '{}' must be a string or a number{}"
    for column, values, more in (
        ("label", lists, "; several .*--multi-label"),
        ("text", [b"a", b"b", b"c", b"d"], "$"),
    ):
        write_frame(file, {**good, column: values})
        with pytest.raises(DataError, match=must.format(column, more)):
            labelled(file)
    frame = pandas.DataFrame({**good, "label": [True, True, False, False]}).astype("category")
    frame.to_parquet(file)
    assert [label for _, label in labelled(file)] == ["true"] * 2 + ["false"] * 2
