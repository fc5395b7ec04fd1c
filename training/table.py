"""A user's labelled texts: a .csv, .tsv or .jsonl file, validated before training starts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.text.rows import Format, Rows
from heedful.training.errors import DataError

FORMATS: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl"}
MAX_NAMED = 5
"""Line numbers listed in one message."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text, or a pair of texts, and the line where it begins."""

    line: int
    texts: tuple[str, ...]
    label: str


def read(path: Path, columns: Sequence[str], label_column: str) -> list[Row]:
    """The rows of the file: texts from `columns`, in that order.

    Raises DataError naming line and remedy: another suffix, not UTF-8, no such column, a cell too few
    or too many, an unbalanced quote, not JSON, an empty cell, one label only, a label seen once.
    """
    format = FORMATS.get(path.suffix)
    if format is None:
        raise DataError(
            f"{path.name}: the file must end in .csv, .tsv or .jsonl, which is how it is read"
        )
    wanted = (*columns, label_column)
    try:
        with path.open("rb") as file:
            rows = [
                Row(line, tuple(texts), label.strip())
                for line, (*texts, label) in Rows(
                    file, path.name, format, wanted, DataError, integers=True
                )
            ]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    _check_cells(path, rows, columns, label_column)
    _check_labels(path, rows, label_column)
    return rows


def _check_cells(
    path: Path, rows: Sequence[Row], columns: Sequence[str], label_column: str
) -> None:
    if not rows:
        raise DataError(f"{path.name} holds no row: give it labelled texts")
    for place, column in enumerate((*columns, label_column)):
        empty = [row.line for row in rows if not (*row.texts, row.label)[place].strip()]
        if empty:
            more = f" and {len(empty) - MAX_NAMED} more" if len(empty) > MAX_NAMED else ""
            listed = ", ".join(map(str, empty[:MAX_NAMED]))
            raise DataError(
                f"{path.name}:{empty[0]}: {column!r} is empty (lines {listed}{more}): "
                "fill these rows in or remove them"
            )
    for row in rows:
        for text in (*row.texts, row.label):
            if "\0" in text:
                raise DataError(f"{path.name}:{row.line}: holds a NUL: remove it")


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
