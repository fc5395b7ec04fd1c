"""Rows of a file with their line numbers: CSV, TSV, JSON lines or plain text, read row by row."""

import codecs
import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain
from typing import Any, Literal, Protocol

from heedful.files.tabs import LONE_RETURN, Line, rows_between_tabs

Format = Literal["jsonl", "csv", "tsv", "txt"]
SEPARATORS: dict[Format, str] = {"csv": ",", "tsv": "\t"}
SEPARATOR_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
MAX_LINE = 2 * 1024 * 1024
"""Bytes of a line: a file without line ends must not fill the memory."""
SURROGATE = re.compile("[\ud800-\udfff]")
SEPARATOR_LINE = re.compile(r"sep=([^\r\n])[\r\n]*\Z", re.IGNORECASE)
"""A line for Excel before the header of some .csv files."""
OTHER_FORMATS = {
    codecs.BOM_UTF32_LE: "is UTF-32: set --encoding utf-32",
    codecs.BOM_UTF32_BE: "is UTF-32: set --encoding utf-32",
    codecs.BOM_UTF16_LE: "is UTF-16: set --encoding utf-16",
    codecs.BOM_UTF16_BE: "is UTF-16: set --encoding utf-16",
    b"\x1f\x8b": "is a gzip file: add .gz to its name",
    b"PK\x03\x04": "is a zip file or a workbook: unpack it, or end its name in .xlsx",
}
"""Messages for files with these first bytes. UTF-32's mark precedes UTF-16's, with which it begins."""


class DuplicateFieldError(ValueError):
    """Two fields of a JSON object with a name, of which json would keep the last."""


class Lines(Protocol):
    """An open file."""

    def readline(self, size: int, /) -> bytes: ...


def separator_of(header: str, columns: Sequence[str]) -> str:
    """The separator of a .csv file's cells: the one with which the header has these columns, or most cells."""
    for separator in SEPARATOR_NAMES:
        if set(columns) <= {cell.strip('"') for cell in header.rstrip("\r\n").split(separator)}:
            return separator
    return max(SEPARATOR_NAMES, key=header.count)  # the comma, if several are equally frequent


def similar(name: str, names: Iterable[str]) -> str:
    """A suggestion of the closest name, `; did you mean 'Message'?`; "" where none is close."""
    by_folded = {other.casefold().strip(): other for other in names}
    closest = get_close_matches(name.casefold().strip(), by_folded, 1)
    return f"; did you mean {by_folded[closest[0]]!r}?" if closest else ""


@dataclass(slots=True)
class Rows:
    """The values of `columns` in each row of an open file; of plain text a row is a line.

    Blank lines at the end are ignored; another blank line is a row of empty values. Raises `error` with
    a message that names file, line and remedy.
    """

    file: Lines
    name: str
    format: Format
    columns: Sequence[str]
    error: type[Exception]
    integers: bool = False
    """Whether a JSON value may be an integer or a boolean, which become strings as JSON spells them."""
    list_remedy: str = ""
    """The remedy for a JSON value that is a list."""
    option: str = ""
    """The command line's option for another column, for messages."""
    encoding_remedy: str = ""
    """A further remedy for bytes that are not UTF-8."""
    separator: str = ""
    """Of a table's cells; "" is the format's, or for a .csv file that of `separator_of`."""
    header: bool = True
    """Whether the first row names the columns; otherwise they are 1, 2, .. """
    faults: list[str] | None = None
    """If this is a list, it collects the errors of rows that cannot be read, and these are left out."""
    keeps_record: bool = False
    """Whether `record` is kept. Then a table's columns must have different names."""
    record: dict[str, Any] = field(default_factory=dict, init=False)
    """All cells or fields of the last row, by column."""
    bytes: int = field(default=0, init=False)
    """Bytes read until now."""

    def __iter__(self) -> Iterator[Line]:
        readers = {"jsonl": self._json_lines, "txt": self._plain}
        blank: list[int] = []
        for line, values in readers.get(self.format, self._cells)():
            if values is None:
                blank.append(line)
                continue
            record, self.record = self.record, {}
            yield from ((number, [""] * len(self.columns)) for number in blank)
            blank.clear()
            self.record = record
            yield line, values

    def error_at(self, line: int, reason: str) -> Exception:
        """The error for a line, to raise."""
        return self.error(f"{self.name}:{line}: {reason}")

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Decoded lines with their ends, without a byte order mark."""
        number = 0
        while line := self.file.readline(MAX_LINE + 1):
            number += 1
            self.bytes += len(line)
            if number == 1 and (message := _other_format(line)):
                raise self.error(f"{self.name} {message}")
            if len(line) > MAX_LINE:
                raise self.error_at(number, f"the line is longer than {MAX_LINE} bytes: split it")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                raise self.error_at(
                    number,
                    f"byte 0x{byte:02x} is not UTF-8: save the file as UTF-8{self.encoding_remedy}",
                ) from error
            yield number, text

    def _plain(self) -> Iterator[tuple[int, list[str] | None]]:
        for number, line in self._lines():
            text = line.rstrip("\r\n")
            if number == 1 and "\r" in text and "\n" not in line:
                raise self.error_at(1, LONE_RETURN)
            self._keep({self.columns[0]: text})
            yield number, [text] if text else None

    def _json_lines(self) -> Iterator[tuple[int, list[str] | None]]:
        for number, line in self._lines():
            if not line.strip():
                yield number, None
                continue
            try:
                record = self._object(number, line)
                values = [self._value(number, record, name) for name in self.columns]
            except self.error as error:
                self._skip_or_raise(error)
                continue
            self._keep(record)
            yield number, values

    def _object(self, number: int, line: str) -> dict[str, Any]:
        try:
            record = json.loads(line, object_pairs_hook=_unique_fields)
        except DuplicateFieldError as error:
            raise self.error_at(number, f"two fields {error}: remove one") from error
        except ValueError as error:
            reason = f"not JSON ({error}): write one object a line"
            raise self.error_at(number, reason) from error
        if not isinstance(record, dict):
            raise self.error_at(number, "not a JSON object: write one object a line")
        return record

    def _value(self, number: int, record: dict[str, Any], name: str) -> str:
        if name not in record:
            names = ", ".join(record) or "nothing"
            reason = f"no {name!r}: the object holds {names}{similar(name, record)}"
            raise self.error_at(number, reason + self._remedy())
        value = record[name]
        if self.integers and isinstance(value, float) and value.is_integer():
            value = int(value)  # pandas writes 1.0 in a column that lacks a number elsewhere
        if not isinstance(value, str | int if self.integers else str) and value is not None:
            expected = "a string or an integer" if self.integers else "a string"
            remedy = self.list_remedy if isinstance(value, list) else ""
            raise self.error_at(number, f"{name!r} must be {expected}{remedy}")
        if isinstance(value, bool):
            value = json.dumps(value)
        text = "" if value is None else str(value)
        if SURROGATE.search(text):
            raise self.error_at(number, "holds half of a surrogate pair: remove it")
        return text

    def _cells(self) -> Iterator[tuple[int, list[str] | None]]:
        lines = self._lines()
        first = next((line for line in lines if line[1].strip()), None)
        if first and self.format == "csv" and (match := SEPARATOR_LINE.match(first[1])):
            self.separator = self.separator or match[1]
            first = next(lines, None)
        if not first:
            return
        separator = self.separator or SEPARATORS[self.format]
        if self.format == "csv" and not self.separator:
            separator = separator_of(first[1], self.columns)
        records = self._records(separator, chain([first], lines))
        line, header = next(records)
        if not self.header:
            records = chain([(line, header)], records)
            header = [str(number) for number in range(1, len(header) + 1)]
        if missing := list(dict.fromkeys(name for name in self.columns if name not in header)):
            guesses = "".join(dict.fromkeys(similar(name, header) for name in missing))
            reason = f"no column {' and no column '.join(map(repr, missing))}"
            names = f"the header names {', '.join(header)}{guesses}"
            raise self.error_at(line, f"{reason}: {names}{self._remedy()}")
        for name in header if self.keeps_record else self.columns:
            if header.count(name) > 1:
                raise self.error_at(
                    line, f"two columns {name!r}: rename one of {', '.join(header)}"
                )
        places = [header.index(name) for name in self.columns]
        for line, record in records:
            if len(record) not in (0, len(header)):
                reason = (
                    f'{len(record)} cells where the header has {len(header)}: put "quotes" around '
                    f"a text that holds a {SEPARATOR_NAMES.get(separator, separator)}"
                )
                self._skip_or_raise(self.error_at(line, reason))
                continue
            self._keep(dict(zip(header, record, strict=False)))
            yield line, [record[place] for place in places] if record else None

    def _records(self, separator: str, lines: Iterator[tuple[int, str]]) -> Iterator[Line]:
        """The rows of numbered lines, the header first."""
        if separator == "\t":
            yield from rows_between_tabs(lines, MAX_LINE, self.error_at)
            return
        # The limit is global; its default is below the limit of a JSON line.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
        first = last = 0  # lines of a row

        def texts() -> Iterator[str]:
            nonlocal first, last
            for last, text in lines:
                first = first or last
                yield text

        reader = csv.reader(texts(), delimiter=separator, strict=True)
        while True:
            first = 0
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise self.error_at(first or last, _malformed(str(error))) from error
            yield first, record

    def _skip_or_raise(self, error: Exception) -> None:
        if self.faults is None:
            raise error
        self.faults.append(str(error))

    def _keep(self, record: dict[str, Any]) -> None:
        if self.keeps_record:
            self.record = record

    def _remedy(self) -> str:
        return f"; set {self.option}" if self.option else ""


def _other_format(beginning: bytes) -> str:
    """A message for a file of another format or encoding, by its first line; "" for UTF-8."""
    for mark, message in OTHER_FORMATS.items():
        if beginning.startswith(mark):
            return message
    if b"\0" in beginning[:2] and beginning.strip(b"\0"):  # letters of ASCII
        order = "be" if beginning[0] == 0 else "le"
        return f"looks like UTF-16: set --encoding utf-16-{order}"
    return ""


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise DuplicateFieldError(repr(next(name for name in fields if names.count(name) > 1)))
    return fields


def _malformed(message: str) -> str:
    """The reason and the remedy of an error of csv, whose errors differ only in their messages."""
    if message.startswith("field larger than field limit"):
        return f"a cell is longer than {MAX_LINE} characters: close its quote, or split it"
    if message.startswith("new-line character seen in unquoted field"):
        return LONE_RETURN
    return (
        f"a quote is opened here and not closed well ({message}): close it, "
        'and write a " inside a quoted text as ""'
    )
