"""Texts of files: what was written is read, and what is wrong is named with its line."""

import gzip
import io
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from heedful.cli.errors import CommandError
from heedful.cli.texts import (
    CHUNK,
    CHUNK_CHARACTERS,
    Columns,
    Dialect,
    Format,
    Row,
    Texts,
    chunks,
    open_texts,
)
from heedful.files.rows import MAX_LINE
from heedful.text.invisible import is_blank

UTF_8 = Dialect()


def read(content: bytes, format: Format, dialect: Dialect = UTF_8) -> list[Row]:
    return list(Texts(io.BytesIO(content), "corpus", format, Columns(), dialect))


# A NUL in the first place but one would look like UTF-16.
ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).map(
    lambda text: text.replace("\n", " ").strip("\r\ufeff \t")
)


@given(st.lists(ANY.filter(lambda text: not is_blank(text)), max_size=8))
def test_plain_lines_are_read_as_they_were_written(lines: list[str]) -> None:
    """Tables and JSON lines of every kind: tests/files/test_dialects.py."""
    for mark, end in (("\ufeff", "\n"), ("", "\r\n")):
        content = mark + "".join(text + end for text in lines)
        assert read(content.encode(), "txt") == [Row(text, n) for n, text in enumerate(lines, 1)]
    if lines and (len(lines) > 1 or "\r" not in lines[0]):  # such a file is refused: old Mac's
        assert read(content.encode().rstrip(b"\r\n"), "txt")[-1].text == lines[-1]


LONG = b"dog\n" + b"x" * (MAX_LINE + 1)


@pytest.mark.parametrize(
    ("format", "content", "dialect", "said"),
    [
        ("txt", b"dog\n \ncat\n", "", "corpus:2: the text is blank: remove the line"),
        ("txt", b"dog\n\xff\n", "", "corpus:2: byte 0xff is not UTF-8: save"),
        ("txt", LONG, "", "corpus:2: the line is longer than 2097152 bytes"),
        ("jsonl", b'{"text": "a"}\n{"text": \n', "", "corpus:2: not JSON .*: write one object"),
        ("jsonl", b'{"text": "a"}\n\n{"text": "a"}\n', "", "corpus:2: the text is blank"),
        ("jsonl", b'{"b": "a", "n": 1}\n', "", "corpus:1: no 'text': .* b, n; set --text-column"),
        ("jsonl", b'{"text": 7}\n', "", "corpus:1: 'text' must be a string"),
        ("csv", b"text,text\n1,a\n", "", "corpus:1: two columns 'text'"),
        ("csv", b'id,text\n1,"a\nb"\n2\n', "", "corpus:4: 1 cells where the header has 2: put"),
        ("csv", b'id,text\n1,a\n2,"b\n', "", "corpus:3: a quote is opened here .*: close it"),
        ("csv", b'id,text\n1,"a\n\n"\n2,\n', "", "corpus:5: the text is blank"),
        ("csv", b"text\n\xe9\n", "", "corpus:2: byte 0xe9 .*or set --encoding: cp1252 is"),
        ("csv", b"text\n\x81\n", "cp1252", "--encoding cp1252 does not fit corpus: .*0x81"),
        ("csv", b"text\n", "utf-16", "--encoding utf-16 does not fit corpus: .*BOM"),
        ("csv", b"text\n", "latin9000", "--encoding latin9000 is unknown: cp1252 is Excel's"),
        ("csv", b"text\n", "hex", "--encoding hex is unknown"),
        ("jsonl", b"{}\n", ";", "--delimiter: corpus is jsonl, no table: leave it out"),
        ("parquet", b"", "cp1252", "--encoding: corpus is parquet"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_a_remedy(
    format: Format, content: bytes, dialect: str, said: str
) -> None:
    delimited = len(dialect) == 1
    with pytest.raises(CommandError, match=said):
        read(content, format, Dialect("", dialect) if delimited else Dialect(dialect))


def test_no_more_is_read_than_is_asked_for_and_chunks_are_bounded() -> None:
    file = io.BytesIO(b"dog\n" * 100_000)
    assert next(iter(Texts(file, "corpus", "txt", Columns()))) == Row("dog", 1)
    assert file.tell() == 4
    assert [read(b"", format) for format in ("txt", "jsonl", "csv")] == [[], [], []]
    assert [len(one) for one in chunks(iter([Row("x", 1)] * (CHUNK + 1)))] == [CHUNK, 1]
    half = Row("x" * (CHUNK_CHARACTERS // 2), 1)
    assert [len(one) for one in chunks(iter([half] * 5))] == [2, 2, 1]


def test_an_incomplete_gzip_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "TEXTS.TXT.GZ"
    file.write_bytes(gzip.compress(b"dog\ncat\n")[:-9])
    with (
        open_texts(str(file)) as opened,
        pytest.raises(CommandError, match="a damaged or incomplete gzip"),
    ):
        list(Texts(opened, "t", "txt", Columns()))


def test_parquet() -> None:
    table: dict[str, list[object]] = {"text": ["dog", "cat", None], "id": [5, 6, 7]}
    bytes_as_ids: dict[str, list[object]] = {"text": ["a"], "id": [b"5"]}
    for columns, refused, said in (
        (Columns(), table, "t:3: the text is blank"),
        (Columns("body"), table, "no column 'body': it holds text, id; set --text-c"),
        (Columns(id="id"), bytes_as_ids, "t:1: 'id' must be a string or a number"),
    ):
        file = io.BytesIO()
        parquet.write_table(pyarrow.table(refused), file)
        with pytest.raises(CommandError, match=said):
            list(Texts(file, "t", "parquet", columns))
    with pytest.raises(CommandError, match="is no parquet file"):
        list(Texts(io.BytesIO(b"dog\n"), "t", "parquet", Columns()))
