"""A file of vectors that grows chunk by chunk and can be resumed after a kill.

While it grows, `vectors.npy.part` holds the rows, and `vectors.npy.part.json` records how many of its
bytes are valid and what they were made from; a resumed run truncates the rest. At the end the file is
renamed to `vectors.npy`: under that name it is complete or absent. The part of a parquet or gzip file
holds JSON lines, which are converted at the end.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.lib.format as npy
import orjson

from heedful.cli.errors import CommandError
from heedful.cli.streams import standard_output
from heedful.cli.texts import Row
from heedful.cli.vector_formats import Vectors, json_lines, to_gzip, to_parquet
from heedful.files.atomic import remove_parts, write_file

SUFFIXES = (".jsonl", ".jsonl.gz", ".npy", ".parquet")
STDOUT = Path("-")


def check_free(out: Path, suffixes: Sequence[str]) -> None:
    """Raise CommandError unless a new file can have this name, which must end in one of `suffixes`.

    Raises ModuleNotFoundError for a .parquet file where pyarrow is not installed.
    """
    if out == STDOUT:
        return
    if not out.name.endswith(tuple(suffixes)):
        raise CommandError(f"{out}: the suffix must be one of {', '.join(suffixes)}")
    if out.suffix == ".parquet":
        import pyarrow  # noqa: F401  # or it would be missed after all the work
    if out.exists():
        raise CommandError(f"{out} exists: remove it, or name another file")


class VectorFile:
    """A file that grows. `made_from` holds all that decides its rows: a run with another one cannot resume it."""

    def __init__(
        self, out: Path, made_from: Mapping[str, Any], dimension: int, *, resume: bool
    ) -> None:
        """Raises CommandError if files are in the way or belong to another run."""
        check_free(out, SUFFIXES)
        self._out = out
        self._part = _part(out)
        self._state = _state(out)
        self._made_from = dict(made_from)
        self._texts = hashlib.sha256()
        self.rows = 0
        self._dimension = dimension
        self.resumed: dict[str, Any] | None = None
        self._file: BinaryIO
        if self._state.exists():
            if not resume:
                raise CommandError(
                    f"{self._part} is left from an earlier run: "
                    "continue it with --resume, or remove it and its .json"
                )
            self.resumed = self._read_state()

    @classmethod
    def ended(cls, out: Path) -> bool:
        """Whether `out` is complete. If so, removes the files that a killed run left next to it."""
        converted = out.suffix in (".gz", ".parquet")  # at the end, from JSON lines
        if not out.exists() or (_part(out).exists() and not converted):
            return False
        _clean(out)
        return True

    def __enter__(self) -> Self:
        try:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._part.open("r+b" if self.resumed else "wb")
        except OSError as error:
            raise CommandError(f"cannot write {self._part}: {error.strerror}") from error
        if self.resumed:
            self._file.truncate(self.resumed["bytes"])
            self._file.seek(0, os.SEEK_END)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._file.close()
            return
        with suppress(OSError):  # closing writes again what did not fit on the disk
            self._file.close()
        if not self._state.exists():
            self._part.unlink(missing_ok=True)  # holds nothing that a resumed run could use

    def skip(self, rows: Iterable[Row]) -> None:
        """Skip the rows that an earlier run embedded. Raises CommandError if their texts or ids differ."""
        assert self.resumed, "there is nothing to skip"
        for row in rows:
            self._count(row)
        if (self.rows, self._texts.hexdigest()) != (self.resumed["rows"], self.resumed["texts"]):
            raise CommandError(
                f"the first {self.resumed['rows']} texts, or their ids, are not those of {self._part}: "
                "give the file that it was made from, or remove it and its .json to start again"
            )

    def append(self, chunk: Sequence[Row], vectors: Vectors) -> None:
        """Write the vectors (N, D) of a chunk, NaN for a text that was skipped. They are synced to the disk."""
        with self._writing():
            if not self.rows:
                self._file.write(self._header())
            start = self.rows
            for row in chunk:
                self._count(row)
            self._file.write(self._encode(start, chunk, vectors))
            self._save()

    def finish(self, *, ids: bool = False, integer_ids: Any = None) -> None:
        """Complete the header and rename the file; `ids` and `integer_ids` are those of `to_parquet`."""
        with self._writing():
            if not self.rows:
                self._file.write(self._header())
            end = self._file.tell()
            self._file.seek(0)
            self._file.write(self._header())  # of the same length, now with the number of rows
            self._file.seek(end)
            self._sync()
            if self._out.suffix == ".parquet":
                columns = {"ids": ids, "integer_ids": integer_ids}
                write_file(
                    self._out, lambda out: to_parquet(self._part, out, self._dimension, **columns)
                )
            elif self._out.suffix == ".gz":
                write_file(self._out, lambda out: to_gzip(self._part, out))
            else:
                self._part.replace(self._out)
            _clean(self._out)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise CommandError in place of an OSError, such as that of a full disk."""
        try:
            yield
        except OSError as error:
            resumable = self._state.exists()
            remedy = ", then continue with --resume" if resumable else ", or name another file"
            raise CommandError(
                f"cannot write {self._out}: {error.strerror}: make room{remedy}"
            ) from error

    def _count(self, row: Row) -> None:
        for value in (row.text, row.id):
            if value is not None:
                data = value.encode("utf-8", "surrogatepass")
                self._texts.update(len(data).to_bytes(8, "little") + data)
        self.rows += 1

    def _header(self) -> bytes:
        """The npy header, padded for any number of rows; JSON lines have none."""
        if self._out.suffix != ".npy":
            return b""
        shape = (self.rows, self._dimension)
        buffer = BytesIO()
        npy.write_array_header_1_0(buffer, {"descr": "<f4", "fortran_order": False, "shape": shape})
        return buffer.getvalue()

    def _encode(self, start: int, chunk: Sequence[Row], vectors: Vectors) -> bytes:
        if self._out.suffix == ".npy":
            return np.ascontiguousarray(vectors, "<f4").tobytes()
        return json_lines(start, [row.id for row in chunk], vectors)

    def _save(self) -> None:
        """Sync the rows to the disk, then the state that counts them."""
        self._sync()
        state = {
            "made_from": self._made_from,
            "rows": self.rows,
            "bytes": self._file.tell(),
            "texts": self._texts.hexdigest(),
        }
        write_file(self._state, lambda part: part.write_bytes(orjson.dumps(state)))

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read_state(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads(self._state.read_bytes())
            size = self._part.stat().st_size
        except (OSError, ValueError) as error:
            raise CommandError(f"{self._state} or its rows cannot be read: remove both") from error
        if size < state["bytes"]:
            raise CommandError(f"{self._part} is shorter than {self._state} says: remove both")
        for name, value in self._made_from.items():
            if (recorded := state["made_from"].get(name)) != value:
                raise CommandError(
                    f"{self._part} was made with {name} {recorded}, not {value}: "
                    "continue with that, or remove it and its .json to start again"
                )
        return state


class StandardOutput:
    """JSON lines on the standard output; nothing is kept to resume."""

    resumed: None = None

    def __init__(self) -> None:
        """Raises CommandError where it is closed."""
        self.rows = 0
        self._file = standard_output()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.flush()

    def append(self, chunk: Sequence[Row], vectors: Vectors) -> None:
        """Write the vectors (N, D) of a chunk, without rows of NaN."""
        self._file.write(json_lines(self.rows, [row.id for row in chunk], vectors))
        self.rows += len(chunk)

    def finish(self, *, ids: bool = False, integer_ids: Any = None) -> None:
        """Nothing is left to do."""


def _part(out: Path) -> Path:
    return out.with_name(f"{out.name}.part")


def _state(out: Path) -> Path:
    return out.with_name(f"{out.name}.part.json")


def _clean(out: Path) -> None:
    """Remove the temporary files that this run, or a killed one, wrote next to a complete file."""
    for path in (_part(out), _state(out)):
        path.unlink(missing_ok=True)
        remove_parts(path)
    remove_parts(out)
