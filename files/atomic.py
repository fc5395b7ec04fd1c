"""Files and folders that appear whole or not at all."""

import glob
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` on a temporary file next to `path`, flush it to the disk and rename it to `path`.

    A kill before the rename, which is the last step, leaves the temporary file, which `remove_parts` removes. An
    OSError names `path` if it names the temporary file or none, as that of a full disk.
    """
    part = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with _errors_named(path, part):
            write(part)
            _sync(part)
            part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def remove_parts(path: Path) -> None:
    """Remove the temporary files of killed calls of `write_file` on `path`. No other call may run meanwhile."""
    for part in path.parent.glob(f".{glob.escape(path.name)}-{'[0-9a-f]' * 8}"):
        part.unlink()


def write_json(path: Path, value: object) -> None:
    text = json.dumps(value, indent=2) + "\n"
    write_file(path, lambda part: part.write_text(text, encoding="utf-8"))


def write_arrays(path: Path, **arrays: npt.ArrayLike) -> None:
    """Write an .npz archive, and create its folder if it does not exist."""

    def write(part: Path) -> None:
        with part.open("wb") as out:  # numpy appends .npz to a name
            np.savez(out, **arrays)  # type: ignore[arg-type]  # its keywords are typed as flags too

    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, write)


@contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder; when the block ends without an error, it replaces `folder`.

    An OSError without a file name gets that of `folder`.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        _errors_named(folder),
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary,
    ):
        new = Path(temporary) / folder.name
        new.mkdir()
        yield new
        for file in new.rglob("*"):
            if file.is_file():
                _sync(file)
        if folder.exists():
            folder.rename(Path(temporary) / "replaced")
        new.rename(folder)
    _sync(folder.parent)


@contextmanager
def _errors_named(path: Path, part: Path | None = None) -> Iterator[None]:
    """Set the file name of an OSError that names `part` or nothing to `path`."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(part)):
            error.filename = str(path)
        raise


def _sync(path: Path) -> None:
    """Flush a file, or the renames in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
