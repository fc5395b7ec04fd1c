"""A user's own labelled texts: a .csv, .tsv or .jsonl file, checked whole before anything is trained."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from heedful.training.errors import DataError

SEPARATORS = {".csv": ",", ".tsv": "\t"}
LINES = ".jsonl"
REFUSED = re.compile("[\0\ud800-\udfff]")
"""What the service takes in no request."""
NAMED = 5
"""Line numbers that a message lists at most."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text, or two for a pair, and the line of the file where it begins."""

    line: int
    texts: tuple[str, ...]
    label: str


def read(path: Path, columns: Sequence[str], label_column: str) -> list[Row]:
    """The rows of the file: texts from `columns`, in that order.

    Raises DataError naming line and remedy: another suffix, not UTF-8, no such column, a cell too few
    or too many, an unbalanced quote, not JSON, an empty cell, one label only, a label seen once.
    """
    if path.suffix not in (*SEPARATORS, LINES):
        raise DataError(
            f"{path.name}: the file must end in .csv, .tsv or .jsonl, which is how it is read"
        )
    content = _decoded(path)
    wanted = (*columns, label_column)
    cells = _objects if path.suffix == LINES else _cells
    rows = [
        Row(line, tuple(texts), label.strip())
        for line, (*texts, label) in cells(path, content, wanted)
    ]
    _check_cells(path, rows, columns, label_column)
    _check_labels(path, rows, label_column)
    return rows


def _decoded(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return raw.decode("utf-8-sig")  # Excel marks its UTF-8 files
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path.name}:{line}: byte 0x{raw[error.start]:02x} is not UTF-8: save the file as UTF-8"
        ) from error


def _cells(path: Path, content: str, wanted: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """(line, wanted cells) of each record of a file with a header."""
    separator = SEPARATORS[path.suffix]
    records = _records(path, content, separator)
    _, header = next(records, (1, []))
    for name in wanted:
        if header.count(name) != 1:
            fault = "two columns" if name in header else "no column"
            raise DataError(
                f"{path.name}:1: {fault} {name!r}: the header names {', '.join(header) or 'nothing'}"
            )
    places = [header.index(name) for name in wanted]
    for line, record in records:
        if len(record) not in (0, len(header)):
            raise DataError(
                f"{path.name}:{line}: {len(record)} cells where the header has {len(header)}: "
                f'put "quotes" around a text that holds a {"tab" if separator == chr(9) else "comma"}'
            )
        yield line, [record[place] if record else "" for place in places]


def _records(path: Path, content: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Records with the lines where they begin; blank lines at the end are none."""
    reader = csv.reader(
        StringIO(content.rstrip("\r\n"), newline=""), delimiter=separator, strict=True
    )
    while True:
        line = reader.line_num + 1
        try:
            yield line, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                f"{path.name}:{line}: a quote is opened here and not closed well ({error}): close it, "
                'and write a " inside a quoted text as ""'
            ) from error


def _objects(path: Path, content: str, wanted: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """(line, wanted values) of each JSON object."""
    for line, text in enumerate(content.rstrip().split("\n"), 1):
        try:
            record = json.loads(text) if text.strip() else dict.fromkeys(wanted, "")
        except json.JSONDecodeError as error:
            raise DataError(
                f"{path.name}:{line}: not JSON ({error.msg}): write one object a line"
            ) from error
        if not isinstance(record, dict):
            raise DataError(f"{path.name}:{line}: not a JSON object: write one object a line")
        for name in wanted:
            if name not in record:
                raise DataError(
                    f"{path.name}:{line}: no {name!r}: it holds {', '.join(record) or 'nothing'}"
                )
            if not isinstance(record[name], str | int | None):
                raise DataError(f"{path.name}:{line}: {name!r} must be a string")
        yield line, ["" if record[name] is None else str(record[name]) for name in wanted]


def _check_cells(
    path: Path, rows: Sequence[Row], columns: Sequence[str], label_column: str
) -> None:
    if not rows:
        raise DataError(f"{path.name} holds no row: give it labelled texts")
    for place, column in enumerate((*columns, label_column)):
        empty = [row.line for row in rows if not (*row.texts, row.label)[place].strip()]
        if empty:
            more = f" and {len(empty) - NAMED} more" if len(empty) > NAMED else ""
            listed = ", ".join(map(str, empty[:NAMED]))
            raise DataError(
                f"{path.name}:{empty[0]}: {column!r} is empty (lines {listed}{more}): "
                "fill these rows in or remove them"
            )
    for row in rows:
        for text in (*row.texts, row.label):
            if found := REFUSED.search(text):
                name = "a NUL" if found[0] == "\0" else "half of a surrogate pair"
                raise DataError(f"{path.name}:{row.line}: holds {name}: remove it")


def _check_labels(path: Path, rows: Sequence[Row], column: str) -> None:
    counts = Counter(row.label for row in rows)
    if len(counts) == 1:
        raise DataError(
            f"{path.name}:{rows[0].line}: every row has the label {rows[0].label!r}: give at least two labels "
            f"in {column!r}"
        )
    once = [row for row in rows if counts[row.label] == 1]
    if once:
        more = f" ({len(once)} labels are)" if len(once) > 1 else ""
        raise DataError(
            f"{path.name}:{once[0].line}: label {once[0].label!r} is seen once{more}: add texts of that "
            f"label, or remove the row; is {column!r} the column of labels?"
        )
