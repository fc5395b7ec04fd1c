"""Read texts one at a time, with their line numbers, from JSON lines, CSV or plain text."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from heedful.cli.errors import CommandError
from heedful.text.rows import Rows

Format = Literal["jsonl", "csv", "txt"]


@dataclass(frozen=True, slots=True)
class Row:
    text: str
    line: int  # of its first line, from 1


class Texts:
    """Reads texts from an open file; `field` is the JSON field or the CSV column that holds them.

    Every error is a CommandError that names file and line.
    """

    def __init__(self, file: BinaryIO, name: str, format: Format, field: str) -> None:
        self.name = name
        self._rows = Rows(file, name, format, [field], CommandError, option="--field")
        self.wrong = self._rows.wrong

    @property
    def bytes(self) -> int:
        """Read so far."""
        return self._rows.bytes

    def __iter__(self) -> Iterator[Row]:
        for line, (text,) in self._rows:
            if not text or text.isspace():
                raise self.wrong(line, "the text is blank: remove the line, or give it a text")
            yield Row(text, line)


def format_of(file: str) -> Format:
    """The format by the suffix; "-" is plain text. Raises CommandError for another suffix."""
    suffix = "txt" if file == "-" else Path(file).suffix.removeprefix(".").lower()
    for known in get_args(Format):
        if suffix == known:
            return known  # type: ignore[no-any-return]  # get_args gives Any
    raise CommandError(
        f"{file}: the suffix is none of .jsonl, .csv and .txt: rename it, or set --format"
    )
