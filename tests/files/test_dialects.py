"""Tables by many writers: every row is read as it was written, or the file is refused; none vanishes."""

import csv
import gzip
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import pandas
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heedful.files.rows import Format, Rows


class Refused(Exception):
    pass


def read(
    content: bytes, format: Format, columns: Sequence[str] = ("text", "label"), **options: Any
) -> list[tuple[int, list[str]]]:
    return list(Rows(io.BytesIO(content), "t", format, columns, Refused, **options))


QUOTES = ('"', '""', '"so" it is', "'")
BETWEEN = (",", ";", "|", "\t", "\n", "\r\n", " ", "\\")
PARTS = st.sampled_from([*QUOTES, *BETWEEN, "no", "film", "é", "sep=;", "\u200b", "#"])
CELLS = st.lists(PARTS, min_size=1, max_size=5).map("".join)
TABLES = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6)
"""Of texts and labels, each of which may hold what separates cells and rows."""


def by_csv(**dialect: Any) -> Callable[[list[tuple[str, str]]], bytes]:
    def write(rows: list[tuple[str, str]]) -> bytes:
        out = io.StringIO(newline="")
        csv.writer(out, **dialect).writerows([("text", "label"), *rows])
        return out.getvalue().encode()

    return write


def by_excel(start: str, **dialect: Any) -> Callable[[list[tuple[str, str]]], bytes]:
    """Excel's "CSV UTF-8" begins with a byte order mark; some begin with a line for Excel."""
    return lambda rows: start.encode() + by_csv(lineterminator="\r\n", **dialect)(rows)


def by_pandas_as_json(rows: list[tuple[str, str]]) -> bytes:
    frame = pandas.DataFrame(rows, columns=["text", "label"])
    written: str = frame.to_json(orient="records", lines=True)
    return f"\ufeff{written}".encode()


WRITERS: dict[str, tuple[Format, Callable[[list[tuple[str, str]]], bytes]]] = {
    "csv": ("csv", by_csv()),
    "csv, unix": ("csv", by_csv(dialect="unix")),
    "csv, all quoted, semicolons": ("csv", by_csv(delimiter=";", quoting=csv.QUOTE_ALL)),
    "csv, bars": ("csv", by_csv(delimiter="|", quoting=csv.QUOTE_NONNUMERIC)),
    "csv, tabs in .csv": ("csv", by_csv(dialect="excel-tab")),
    "csv, tabs": ("tsv", by_csv(dialect="excel-tab")),
    "csv, tabs, all quoted": ("tsv", by_csv(dialect="excel-tab", quoting=csv.QUOTE_ALL)),
    "pandas, which writes by csv": ("csv", by_csv(lineterminator="\n")),
    "Excel": ("csv", by_excel("\ufeff")),
    "Excel in Europe": ("csv", by_excel("\ufeff", delimiter=";")),
    "a line for Excel": ("csv", by_excel("\ufeffsep=;\r\n", delimiter=";")),
    "Excel, tabs": ("tsv", by_excel("\ufeff", delimiter="\t")),
    "a blank line first": ("csv", by_excel("\n\r\n")),
    "pandas, JSON lines": ("jsonl", by_pandas_as_json),
}


@pytest.mark.parametrize("name", WRITERS)
@given(rows=TABLES)
@example(rows=[('"Good', "a"), ('bad"', "b")])
@example(rows=[('"Good" film', "a"), ('"', '"')])
def test_rows_are_read_as_they_were_written(name: str, rows: list[tuple[str, str]]) -> None:
    format, write = WRITERS[name]
    content = write(rows)
    try:
        rows_read = [tuple(values) for _, values in read(content, format)]
    except Refused as error:  # lines that are rows too
        is_one_row = any("\t" in cell and "\n" in cell for row in rows for cell in row)
        if not is_one_row or "each of these lines is a row too" not in str(error):
            raise
    else:
        assert rows_read == rows


LINES = CELLS.map(lambda cell: re.sub(r"[\t\n\r]", "", cell)).filter(bool)


@given(st.lists(st.tuples(LINES, LINES), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
@example([('"Good film', "pos"), ("fine", "neg"), ('it was bad"', "neg")], "\n")
@example([('"Good film', "pos"), ('"Bad film', "neg")], "\n")
@example([("pos", '"Good film'), ('"Bad" film', "neg")], "\n")
def test_of_a_table_written_by_hand_no_row_is_lost(rows: list[tuple[str, str]], end: str) -> None:
    """Cells between tabs as they are. A cell that is quoted from end to end is read without its quotes."""
    content = end.join("\t".join(row) for row in [("text", "label"), *rows])
    try:
        rows_read = read(content.encode(), "tsv")
    except Refused as error:
        if "each of these lines is a row too" not in str(error):
            raise
        return
    assert [line for line, _ in rows_read] == list(range(2, len(rows) + 2))
    for (_, values), row in zip(rows_read, rows, strict=True):
        assert "\t".join(values).replace('"', "") == "\t".join(row).replace('"', "")


OPEN = 'text\tlabel\n"Good film\tpos\nfine\tpos\nit was bad"\tneg\n'


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("tsv", OPEN, "t:2: a quote is opened here and closed in line 4, but each of these lines"),
        ("tsv", 'text\n"Good\nbad"\n', r"t:2: a quote is opened here and closed in line 3"),
        ("tsv", "text\tlabel\ra\tb\r", r"t:1: a carriage return"),
        ("csv", "\n\ntext,label\na,b,c\n", r"t:4: 3 cells"),
        ("csv", "\n\nbody,label\na,b\n", r"t:3: no column 'text'"),
        ("csv", "sep=;\nbody;label\na;b\n", r"t:2: no column 'text': the header names body, label"),
        ("txt", "so\rit\ris\r", r"t:1: a carriage return"),
        ("jsonl", '{"text": "a"}\n{"text": "b", "text": "c"}\n', r"t:2: two fields 'text': remove"),
        ("jsonl", '{"text": "a"},\n{"text": "b"}\n', r"t:1: not JSON \(Extra data"),
        ("jsonl", '[{"text": "a"}, {"text": "b"}]', r"t:1: not a JSON object"),
    ],
)
def test_what_may_be_one_row_or_several_is_refused(
    format: Format, content: str, message: str
) -> None:
    columns = ["text", "label"] if "label" in content else ["text"]
    with pytest.raises(Refused, match=message):
        read(content.encode(), format, columns)


TABLE = "text,label\nso,a\n"


@pytest.mark.parametrize("format", ["csv", "tsv", "txt", "jsonl"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TABLE.encode("utf-16"), "t is UTF-16: set --encoding utf-16$"),
        (b"\xfe\xff" + TABLE.encode("utf-16-be"), "t is UTF-16: set --encoding utf-16$"),
        (TABLE.encode("utf-16-le"), "t looks like UTF-16: set --encoding utf-16-le"),
        (TABLE.encode("utf-16-be"), "t looks like UTF-16: set --encoding utf-16-be"),
        (TABLE.encode("utf-32"), "t is UTF-32: set --encoding utf-32"),
        (gzip.compress(TABLE.encode(), mtime=0), r"t is a gzip file: add \.gz to its name"),
        (b"PK\x03\x04\x14\0", r"t is a zip file or a workbook: .* \.xlsx"),
    ],
)
def test_a_file_of_another_kind_is_named(format: Format, content: bytes, message: str) -> None:
    with pytest.raises(Refused, match=message):
        read(content, format, ["text"])
