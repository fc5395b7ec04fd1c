"""Read texts one at a time, with their line numbers: JSON lines, CSV, plain text or parquet, gzipped or not."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast, get_args

from heedful.cli.errors import CommandError
from heedful.text.rows import Line, Rows

Format = Literal["jsonl", "csv", "txt", "parquet"]
GZIPPED = ".gz"
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


class Texts:
    """Reads texts from an open file. Every error is a CommandError that names file and line."""

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        format: Format,
        columns: Columns,
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
        self._file, self._format, self._blank = file, format, blank
        self._names = [columns.text, *([columns.id] if columns.id else [])]
        plain = "txt" if format == "parquet" else format
        self._rows = Rows(
            file, name, plain, self._names, CommandError, bool(columns.id), "--field or --id-field"
        )
        if format == "txt" and columns.id:
            raise CommandError(f"--id-field: {name} is plain text, which has no fields")
        self.wrong = self._rows.wrong

    @property
    def bytes(self) -> int:
        """Read so far."""
        return self._file.tell() if self._format == "parquet" else self._rows.bytes

    def __iter__(self) -> Iterator[Row]:
        lines = self._parquet() if self._format == "parquet" else iter(self._rows)
        try:
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
                raise CommandError(f"{self.name}: {reason}; set --field or --id-field")
        row = 0
        for batch in table.iter_batches(BATCH, columns=self._names):
            for values in zip(*(batch[name].to_pylist() for name in self._names), strict=True):
                row += 1
                if not isinstance(values[0], str | None):
                    raise self.wrong(row, f"{self._names[0]!r} must be a string")
                yield row, ["" if value is None else str(value) for value in values]


def format_of(file: str) -> Format:
    """The format by the suffix; "-" is plain text. Raises CommandError for another suffix."""
    name = file.lower().removesuffix(GZIPPED)
    suffix = "txt" if file == "-" else Path(name).suffix.removeprefix(".")
    if suffix in get_args(Format):
        return cast(Format, suffix)
    raise CommandError(
        f"{file}: the suffix is none of .jsonl, .csv, .txt and .parquet (or one of the first three and "
        ".gz): rename it, or set --format"
    )


def open_texts(source: str) -> AbstractContextManager[BinaryIO]:
    """The file, uncompressed; stdin for "-". Raises CommandError."""
    if source == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        if source.endswith(GZIPPED):
            return cast(AbstractContextManager[BinaryIO], gzip.open(source, "rb"))
        return Path(source).open("rb")
    except OSError as error:
        raise CommandError(f"cannot read {source}: {error.strerror}") from error
