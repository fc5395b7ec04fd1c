"""Read texts one at a time, with their line numbers: JSON lines, CSV, TSV, plain text or parquet, gzipped or not."""

import codecs
import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast, get_args

from heedful.cli.errors import CommandError
from heedful.files.rows import MAX_LINE, SEPARATORS, Line, Rows, separator_of

Format = Literal["jsonl", "csv", "tsv", "txt", "parquet"]
GZIPPED, GZIP_MAGIC = ".gz", b"\x1f\x8b"
KNOWN = "cp1252 is Excel's on Windows, utf-16 that of its Unicode text"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BATCH = 512
"""Rows of a parquet file that are read at once."""


@dataclass(frozen=True, slots=True)
class Row:
    text: str
    line: int  # of its first line, from 1; of parquet, the row
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """The JSON fields or the columns to read."""

    text: str = "text"
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file is written: "" is UTF-8, and the delimiter that a .csv file's header suggests."""

    encoding: str = ""
    delimiter: str = ""


class _Lines:
    """The lines of a file in UTF-8. The first one can be looked at before it is read."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        """Raises LookupError for an unknown encoding."""
        self._file = file
        self._text = TextIOWrapper(file, encoding, newline="\n") if encoding else None
        self._held: bytes | None = None

    def first(self) -> bytes:
        self._held = self.readline(MAX_LINE + 1)
        return self._held

    def readline(self, size: int) -> bytes:
        """Raises UnicodeDecodeError where the file has another encoding."""
        if self._held is not None:
            held, self._held = self._held, None
            return held
        return self._text.readline(size).encode() if self._text else self._file.readline(size)


class Texts:
    """Reads texts from an open file. Every error is a CommandError that names file and line."""

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        format: Format,
        columns: Columns,
        dialect: Dialect = Dialect(),
        *,
        blank: bool = False,
    ) -> None:
        """`blank` texts are rows too; else they are errors.

        Raises CommandError for options that do not go together, ModuleNotFoundError for parquet where
        pyarrow is not installed.
        """
        if format == "parquet":
            import pyarrow  # noqa: F401  # or it would be missed after the model is loaded
        self.name = name
        self.integer_ids: Any = None
        """pyarrow's type of the ids, where they are integers of parquet; known while the rows are read."""
        self._file, self._format, self._blank = file, format, blank
        self._names = [columns.text, *([columns.id] if columns.id else [])]
        if format == "txt" and columns.id:
            raise CommandError(f"--id-column: {name} is plain text, which has no fields")
        if dialect.encoding and format == "parquet":
            raise CommandError(
                f"--encoding: {name} is parquet, which has one encoding: leave it out"
            )
        if dialect.delimiter and format not in SEPARATORS:
            raise CommandError(f"--delimiter: {name} is {format}, no table: leave it out")
        plain = "txt" if format == "parquet" else format
        self._dialect = dialect
        try:
            self._lines = _Lines(file, dialect.encoding)
        except LookupError as error:
            raise CommandError(f"--encoding {dialect.encoding} is unknown: {KNOWN}") from error
        self._rows = Rows(
            self._lines,
            name,
            plain,
            self._names,
            CommandError,
            integers=bool(columns.id),
            option="--text-column or --id-column",
            other_encoding="" if dialect.encoding else f", or set --encoding: {KNOWN}",
            separator=dialect.delimiter,
        )
        self.wrong = self._rows.wrong

    @property
    def bytes(self) -> int:
        """Read so far."""
        return self._file.tell() if self._format == "parquet" else self._rows.bytes

    def __iter__(self) -> Iterator[Row]:
        try:
            lines = self._parquet() if self._format == "parquet" else self._plain()
            for line, (text, *ids) in lines:
                if not self._blank and (not text or text.isspace()):
                    raise self.wrong(
                        line,
                        "the text is blank: remove the line, give it a text, or set --on-error skip",
                    )
                yield Row(text, line, *ids)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CommandError(
                f"{self.name} is no whole gzip file ({error}): copy it again"
            ) from error
        except UnicodeError as error:
            said = f"--encoding {self._dialect.encoding} does not fit {self.name}: {error}; {KNOWN}"
            raise CommandError(said) from error

    def _plain(self) -> Iterator[Line]:
        first = self._lines.first()
        if not self._dialect.encoding and first.startswith(UTF_16):
            raise CommandError(f"{self.name} is UTF-16: set --encoding utf-16")
        if self._format == "csv" and not self._dialect.delimiter:
            self._rows.separator = separator_of(first.decode("utf-8-sig", "replace"), self._names)
        return iter(self._rows)

    def _parquet(self) -> Iterator[Line]:
        import pyarrow
        from pyarrow import parquet

        try:
            table = parquet.ParquetFile(self._file)
        except pyarrow.ArrowInvalid as error:
            raise CommandError(f"{self.name} is no parquet file: {error}") from error
        held = table.schema_arrow.names
        for name in self._names:
            if name not in held:
                reason = f"no column {name!r}: it holds {', '.join(held)}"
                raise CommandError(f"{self.name}: {reason}; set --text-column or --id-column")
        if len(self._names) > 1:
            ids = table.schema_arrow.field(self._names[1]).type
            self.integer_ids = ids if pyarrow.types.is_integer(ids) else None
        row = 0
        for batch in table.iter_batches(BATCH, columns=self._names):
            for values in zip(*(batch[name].to_pylist() for name in self._names), strict=True):
                row += 1
                if not isinstance(values[0], str | None):
                    raise self.wrong(row, f"{self._names[0]!r} must be a string")
                # They would become Python's spelling of them, such as "b'17'".
                if isinstance(values[-1], bytes | list | dict):
                    raise self.wrong(row, f"{self._names[-1]!r} must be a string or a number")
                yield row, ["" if value is None else str(value) for value in values]


def format_of(file: str) -> Format:
    """The format by the suffix; "-" is plain text. Raises CommandError for another suffix."""
    name = file.lower().removesuffix(GZIPPED)
    suffix = "txt" if file == "-" else Path(name).suffix.removeprefix(".")
    if suffix in get_args(Format):
        return cast(Format, suffix)
    raise CommandError(
        f"{file}: the suffix is none of .jsonl, .csv, .tsv, .txt and .parquet (or one of the first four "
        "and .gz): save it as one of these, or set --format"
    )


def open_texts(source: str) -> AbstractContextManager[BinaryIO]:
    """The file, uncompressed; stdin for "-", of which the first bytes say whether it is gzip's.

    Raises CommandError.
    """
    if source == "-":
        stdin = cast(BufferedReader, sys.stdin.buffer)
        zipped = stdin.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
        return nullcontext(cast(BinaryIO, gzip.open(stdin)) if zipped else stdin)
    try:
        if source.lower().endswith(GZIPPED):
            return cast(AbstractContextManager[BinaryIO], gzip.open(source, "rb"))
        return Path(source).open("rb")
    except OSError as error:
        raise CommandError(f"cannot read {source}: {error.strerror}") from error
