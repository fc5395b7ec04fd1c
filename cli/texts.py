"""Read texts one at a time, with their line numbers: JSON lines, CSV, TSV, plain text or parquet, gzipped or not."""

import gzip
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast, get_args

from heedful.cli.errors import CommandError
from heedful.cli.streams import standard_input
from heedful.files.rows import SEPARATORS, Rows, similar
from heedful.files.tabs import Line
from heedful.text.invisible import is_blank

Format = Literal["jsonl", "csv", "tsv", "txt", "parquet"]
GZIPPED, GZIP_MAGIC = ".gz", b"\x1f\x8b"
ENCODINGS = "cp1252 is Excel's on Windows, utf-16 that of its Unicode text"
BATCH = 512
"""Rows of a parquet file that are read at once."""
CHUNK, CHUNK_CHARACTERS = 512, 4 * 1024 * 1024
"""Maximum of texts that are answered at once. The same chunks give the same bits, so a resumed run gives
the bytes of an uninterrupted one."""


@dataclass(frozen=True, slots=True)
class Row:
    text: str
    line: int  # of its first line, from 1; of parquet, the row
    id: str | None = None
    second: str | None = None  # of a pair
    record: Mapping[str, Any] = field(default_factory=dict)  # with `Columns.all_columns`

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.second is None else (self.text, self.second)


@dataclass(frozen=True, slots=True)
class Columns:
    """The JSON fields or columns to read: one text a row, or two; `all_columns` also reads all into `Row.record`."""

    text: str = "text"
    id: str | None = None
    second: str | None = None
    all_columns: bool = False
    id_option: str = "--id-column"
    pair_options: str = "--premise-column or --hypothesis-column"
    """The command line's, for messages."""

    @property
    def names(self) -> list[str]:
        return [self.text, *filter(None, (self.second, self.id))]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file is written: "" is UTF-8, and the delimiter that a .csv file's header suggests."""

    encoding: str = ""
    delimiter: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A file of texts; "-" is stdin."""

    file: str
    given_format: Format | None = None
    columns: Columns = field(default_factory=Columns)
    dialect: Dialect = field(default_factory=Dialect)

    @property
    def format(self) -> Format:
        """Raises CommandError where the suffix tells none."""
        return self.given_format or format_of(self.file)

    @contextmanager
    def open(self, *, blank: bool) -> Iterator["Texts"]:
        """Open the file for reading. A blank text is an error unless `blank`. Raises CommandError."""
        name = "stdin" if self.file == "-" else self.file
        with open_texts(self.file) as file:
            yield Texts(file, name, self.format, self.columns, self.dialect, blank=blank)


class _Lines:
    """The lines of a file in UTF-8."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        """Raises LookupError for an unknown encoding."""
        self._file = file
        self._text = TextIOWrapper(file, encoding, newline="\n") if encoding else None

    def readline(self, size: int) -> bytes:
        """Raises UnicodeDecodeError where the file has another encoding."""
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
        """A blank text is an error unless `blank`.

        Raises CommandError for options that do not go together, ModuleNotFoundError for parquet where
        pyarrow is not installed.
        """
        if format == "parquet":
            import pyarrow  # noqa: F401  # or it would be missed after the model is loaded
        self.name = name
        self.integer_ids: Any = None
        """pyarrow's type of the ids, where they are integers of parquet; known while the rows are read."""
        self.schema: Any = None
        """pyarrow's, of a parquet file; known while the rows are read."""
        self._file, self._format, self._blank = file, format, blank
        self._columns, self._names = columns, columns.names
        options = [columns.pair_options if columns.second else "--text-column"]
        self._option = " or ".join([*options, *([columns.id_option] if columns.id else [])])
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
            raise CommandError(f"--encoding {dialect.encoding} is unknown: {ENCODINGS}") from error
        self._rows = Rows(
            self._lines,
            name,
            plain,
            self._names,
            CommandError,
            integers=bool(columns.id),
            option=self._option,
            keeps_record=columns.all_columns,
            encoding_remedy="" if dialect.encoding else f", or set --encoding: {ENCODINGS}",
            separator=dialect.delimiter,
        )
        self.wrong = self._rows.error_at

    @property
    def size(self) -> int | None:
        """Bytes of a regular, uncompressed UTF-8 file; None for a pipe, a gzip file or another encoding."""
        status = os.fstat(self._file.fileno())
        # Bytes are counted in UTF-8: of another encoding they do not add up to the file's size.
        plain = stat.S_ISREG(status.st_mode) and not hasattr(self._file, "mtime")  # gzip's has one
        return status.st_size if plain and not self._dialect.encoding else None

    @property
    def bytes(self) -> int:
        """Bytes read so far."""
        return self._file.tell() if self._format == "parquet" else self._rows.bytes

    def __iter__(self) -> Iterator[Row]:
        try:
            lines = self._parquet() if self._format == "parquet" else iter(self._rows)
            for line, values in lines:
                text = values[0]
                if not self._blank and is_blank(text):
                    raise self.wrong(
                        line,
                        "the text is blank: remove the line, give it a text, or set --on-error skip",
                    )
                second = values[1] if self._columns.second else None
                id = values[-1] if self._columns.id else None
                yield Row(text, line, id, second, self._rows.record)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CommandError(
                f"{self.name} is a damaged or incomplete gzip file ({error}): copy it again"
            ) from error
        except UnicodeError as error:
            message = f"--encoding {self._dialect.encoding} does not fit {self.name}: {error}; {ENCODINGS}"
            raise CommandError(message) from error

    def _parquet(self) -> Iterator[Line]:
        import pyarrow
        from pyarrow import parquet

        try:
            table = parquet.ParquetFile(self._file)
        except pyarrow.ArrowInvalid as error:
            raise CommandError(f"{self.name} is no parquet file: {error}") from error
        self.schema = table.schema_arrow
        names = self.schema.names
        for name in self._names:
            if name not in names:
                reason = f"no column {name!r}: it holds {', '.join(names)}{similar(name, names)}"
                raise CommandError(f"{self.name}: {reason}; set {self._option}")
        if self._columns.id:
            ids = self.schema.field(self._columns.id).type
            self.integer_ids = ids if pyarrow.types.is_integer(ids) else None
        columns = names if self._columns.all_columns else self._names
        texts = self._names[: 2 if self._columns.second else 1]
        row = 0
        for batch in table.iter_batches(BATCH, columns=columns):
            for record in batch.to_pylist():
                row += 1
                for name in self._names:
                    value = record[name]
                    if name in texts and not isinstance(value, str | None):
                        raise self.wrong(row, f"{name!r} must be a string")
                    # `str` would write Python's spelling of them, such as "b'17'".
                    if isinstance(value, bytes | list | dict):
                        raise self.wrong(row, f"{name!r} must be a string or a number")
                if self._columns.all_columns:
                    self._rows.record = record
                yield (
                    row,
                    ["" if record[name] is None else str(record[name]) for name in self._names],
                )


def format_of(file: str) -> Format:
    """The format of a suffix; "-" is plain text. Raises CommandError for another suffix."""
    name = file.lower().removesuffix(GZIPPED)
    suffix = "txt" if file == "-" else Path(name).suffix.removeprefix(".")
    if suffix in get_args(Format):
        return cast(Format, suffix)
    raise CommandError(
        f"{file}: the suffix is none of .jsonl, .csv, .tsv, .txt and .parquet (or one of the first four "
        "and .gz): save it as one of these, or set --format"
    )


def open_texts(source: str) -> AbstractContextManager[BinaryIO]:
    """Open the file and decompress it; "-" is stdin, whose first bytes say whether it is gzip's.

    Raises CommandError.
    """
    if source == "-":
        stdin = standard_input()
        zipped = stdin.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
        return nullcontext(cast(BinaryIO, gzip.open(stdin)) if zipped else stdin)
    try:
        if source.lower().endswith(GZIPPED):
            return cast(AbstractContextManager[BinaryIO], gzip.open(source, "rb"))
        return Path(source).open("rb")
    except OSError as error:
        raise CommandError(f"cannot read {source}: {error.strerror}") from error


def chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """The rows, CHUNK at a time, or fewer if they are long."""
    chunk: list[Row] = []
    characters = 0
    for row in rows:
        chunk.append(row)
        characters += len(row.text)
        if len(chunk) == CHUNK or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
