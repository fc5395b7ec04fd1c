"""Texts of files: what was written is read, and what is wrong is named with its line."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.cli.errors import CommandError
from heedful.cli.texts import Format, Row, Texts, format_of
from heedful.text.rows import MAX_LINE

texts_of_any_kind = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda t: not t.isspace()),
    max_size=8,
)


def read(content: bytes, format: Format, field: str = "text") -> list[Row]:
    return list(Texts(io.BytesIO(content), "corpus", format, field))


@given(texts_of_any_kind)
def test_json_lines_are_read_as_written(texts: list[str]) -> None:
    content = "".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts))
    assert [row.text for row in read(content.encode(), "jsonl")] == texts


@given(texts_of_any_kind)
def test_csv_is_read_as_written(texts: list[str]) -> None:
    # A lone carriage return inside quotes comes back as Python's csv writes it: as it was.
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow(["id", "sentence"])
    writer.writerows([[i, text] for i, text in enumerate(texts)])
    rows = read(written.getvalue().encode(), "csv", "sentence")
    assert [row.text for row in rows] == texts


@given(texts_of_any_kind)
def test_plain_text_is_a_text_a_line(texts: list[str]) -> None:
    texts = [text for t in texts if (text := t.replace("\n", " ").strip("\r\n\ufeff \t"))]
    texts = [text for text in texts if not text.isspace()]
    for end in ("\n", "\r\n"):
        content = "".join(text + end for text in texts).encode()
        assert read(content, "txt") == [Row(text, n) for n, text in enumerate(texts, 1)]
    if texts:
        assert read(content.rstrip(b"\r\n"), "txt")[-1].text == texts[-1]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert read("\ufeffdog\n\ufeffcat".encode(), "txt") == [Row("dog", 1), Row("\ufeffcat", 2)]
    assert read('\ufefftext\r\n"a\r\nb"\r\nc\r\n'.encode(), "csv") == [
        Row("a\r\nb", 2),
        Row("c", 4),
    ]


@pytest.mark.parametrize(
    ("format", "content", "said"),
    [
        ("txt", b"dog\n \ncat\n", "corpus:2: the text is blank: remove the line"),
        ("txt", b"dog\n\xff\n", "corpus:2: byte 0xff is not UTF-8: save"),
        (
            "txt",
            b"dog\n" + b"x" * (MAX_LINE + 1),
            "corpus:2: the line is longer than 2097152 bytes",
        ),
        ("jsonl", b'{"text": "a"}\n{"text": \n', "corpus:2: not JSON .*: write one object a line"),
        ("jsonl", b'{"text": "a"}\n\n{"text": "a"}\n', "corpus:2: the text is blank"),
        ("jsonl", b'["a"]\n', "corpus:1: not a JSON object"),
        (
            "jsonl",
            b'{"body": "a", "n": 1}\n',
            "corpus:1: no 'text': .* body, n; set --field",
        ),
        ("jsonl", b'{"text": 7}\n', "corpus:1: 'text' must be a string"),
        ("jsonl", b'{"text": "a"}\n{"text": ""}\n', "corpus:2: the text is blank"),
        (
            "csv",
            b"id,body\n1,a\n",
            "corpus:1: no column 'text': .* id, body; set --field",
        ),
        ("csv", b"text,text\n1,a\n", "corpus:1: two columns 'text'"),
        ("csv", b'id,text\n1,"a\nb"\n2\n', "corpus:4: 1 cells where the header has 2: put"),
        ("csv", b'id,text\n1,a\n2,"b\n', "corpus:3: a quote is opened here .*: close it"),
        ("csv", b'id,text\n1,"a\n\n"\n2,\n', "corpus:5: the text is blank"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_a_remedy(
    format: Format, content: bytes, said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        read(content, format)


def test_no_more_is_read_than_is_asked_for() -> None:
    file = io.BytesIO(b"dog\n" * 100_000)
    rows = iter(Texts(file, "corpus", "txt", "text"))
    assert next(rows) == Row("dog", 1)
    assert file.tell() == 4


def test_an_empty_file_has_no_text() -> None:
    for format in ("txt", "jsonl", "csv"):
        assert read(b"", format) == []


def test_the_format_is_the_suffix() -> None:
    assert [format_of(f) for f in ("a.jsonl", "b/A.CSV", "c.txt", "-")] == [
        *("jsonl", "csv", "txt", "txt")
    ]
    with pytest.raises(CommandError, match="rename it, or set --format"):
        format_of("corpus.parquet")
