"""Texts of a file, one at a time, each with the number of its line: JSON lines, CSV or plain text."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, get_args

import orjson

from heedful.cli.errors import CommandError

Format = Literal["jsonl", "csv", "txt"]

LONGEST_LINE = 2 * 1024 * 1024
"""Bytes: a file without line ends must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Row:
    text: str
    line: int  # its first line is 1


class Texts:
    """Reads rows from an open file; `field` is the JSON field or the CSV column that holds the text.

    Every error is a CommandError that names file and line.
    """

    def __init__(self, file: BinaryIO, name: str, format: Format, field: str) -> None:
        self.name = name
        self._file = file
        self._format = format
        self._field = field
        self.bytes = 0  # read so far

    def __iter__(self) -> Iterator[Row]:
        readers = {"jsonl": self._json_lines, "csv": self._csv, "txt": self._plain}
        return readers[self._format]()

    def wrong(self, line: int, reason: str) -> CommandError:
        return CommandError(f"{self.name}, line {line}: {reason}")

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their ends, decoded; a byte order mark is left out."""
        number = 0
        while line := self._file.readline(LONGEST_LINE + 1):
            number += 1
            self.bytes += len(line)
            if len(line) > LONGEST_LINE:
                raise self.wrong(number, f"is longer than {LONGEST_LINE} bytes: split it")
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                reason = f"is not UTF-8 from byte {error.start} on: convert the file to UTF-8"
                raise self.wrong(number, reason) from error
            yield number, text.removeprefix("\ufeff") if number == 1 else text

    def _plain(self) -> Iterator[Row]:
        for number, line in self._lines():
            yield self._row(line.rstrip("\r\n"), number)

    def _json_lines(self) -> Iterator[Row]:
        for number, line in self._lines():
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                reason = f"is not JSON ({error}): write one object a line"
                raise self.wrong(number, reason) from error
            if not isinstance(value, dict):
                raise self.wrong(number, "is no JSON object: write one object a line")
            if self._field not in value:
                found = ", ".join(value) or "none"
                reason = f"has no field {self._field!r}, its fields are: {found}; set --field"
                raise self.wrong(number, reason)
            text = value[self._field]
            if not isinstance(text, str):
                raise self.wrong(number, f"the field {self._field!r} must be a string")
            yield self._row(text, number)

    def _csv(self) -> Iterator[Row]:
        rows = csv.reader((line for _, line in self._lines()), strict=True)
        try:
            header = next(rows, None)
            if header is None:
                return
            if header.count(self._field) != 1:
                columns = ", ".join(header)
                reason = f"has no one column {self._field!r}, but: {columns}; set --text-column"
                raise self.wrong(1, reason)
            column = header.index(self._field)
            first = rows.line_num + 1
            for row in rows:
                if len(row) != len(header):
                    reason = f"has {len(row)} columns, the header has {len(header)}: mend the line"
                    raise self.wrong(first, reason)
                yield self._row(row[column], first)
                first = rows.line_num + 1
        except csv.Error as error:
            raise self.wrong(rows.line_num, f"is not CSV: {error}; mend the line") from error

    def _row(self, text: str, line: int) -> Row:
        if not text or text.isspace():
            raise self.wrong(line, "the text is blank: remove the line, or give it a text")
        return Row(text, line)


def format_of(file: str) -> Format:
    """By the suffix; "-" is plain text. Raises CommandError for another suffix."""
    suffix = "txt" if file == "-" else Path(file).suffix.removeprefix(".").lower()
    for known in get_args(Format):
        if suffix == known:
            return known  # type: ignore[no-any-return]  # get_args gives Any
    raise CommandError(
        f"{file}: the suffix is none of .jsonl, .csv and .txt: rename it, or set --format"
    )
