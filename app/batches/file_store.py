"""Files and batches in a folder of the operator's: /v1/files keeps them, app.batches.batches answers them."""

import contextlib
import fcntl
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from heedful.app.errors import Forbidden, NotFound
from heedful.files.atomic import replace_folder, write_file

NOT_SET = "the operator has set no folder for files: HEEDFUL_FILES"
KEPT = "files are kept until they are deleted: leave it out, and delete them"
ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""Ids that can exist. An id is a folder's name, and file systems fail on names of more than 255 bytes."""
UPLOADED = re.compile(r"file-([0-9a-f]{16})[0-9a-f]{16}")
WRITTEN = re.compile(r"file-(batch-[0-9a-f]{32})-(?:output|error)")
"""Ids of an upload, with its time in nanoseconds, and of what a batch has written, with the batch's id."""


class FileStore:
    """Each file is a folder with `about.json` and `content`; each batch one with `about.json` and its answers.

    A batch that is not finished has a mark in the folder `unfinished`: each process looks there every second.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        """Raises Forbidden where none is set."""
        if self._folder is None:
            raise Forbidden(NOT_SET, code="files_not_set")
        return self._folder

    def parts(self) -> list[Path]:
        """The folders in it that there are: after a move, or a start as another user, each may be of another owner."""
        parts = (self.folder / kind for kind in ("files", "batches", "unfinished"))
        return [part for part in parts if part.exists()]

    def add(
        self, content: BinaryIO | Path, filename: str, purpose: str, name: str | None = None
    ) -> dict[str, Any]:
        """Keep a copy of the content, or the file at a path itself; returns OpenAI's description of the file.

        `name` replaces a file.
        """
        about: dict[str, Any] = {
            "id": name or new_id("file"),
            "object": "file",
            "bytes": 0,
            "created_at": int(time.time()),
            "filename": filename,
            "purpose": purpose,
            "status": "processed",
        }
        with self._lock(fcntl.LOCK_SH), replace_folder(self.folder / "files" / about["id"]) as new:
            if isinstance(content, Path):
                content.rename(new / "content")
            else:
                with (new / "content").open("wb") as out:
                    shutil.copyfileobj(content, out)
            about["bytes"] = (new / "content").stat().st_size
            (new / "about.json").write_bytes(orjson.dumps(about))
        return about

    def remove_unfinished(self) -> None:
        """Remove what processes were killed at adding or deleting. No process does either while this works."""
        with contextlib.suppress(BlockingIOError), self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB):
            for kind in ("files", "batches"):
                for folder in (self.folder / kind).glob(".*"):
                    shutil.rmtree(folder)

    @contextlib.contextmanager
    def _lock(self, operation: int) -> Iterator[None]:
        """Hold the folder's lock, which other services on the same folder take too. Raises BlockingIOError."""
        with (self.folder / "lock").open("a+b") as file:  # what NFS needs for either
            fcntl.flock(file, operation)
            yield

    def files(self) -> list[dict[str, Any]]:
        """Every file, the newest first."""
        return _newest_first(self.folder / "files")

    def file(self, name: str) -> dict[str, Any]:
        """Raises NotFound."""
        return self._about("files", name)

    def created_at(self, name: str) -> int:
        """When a file that may be deleted was made, in seconds: by its id, or the end of its batch. Raises NotFound."""
        if found := UPLOADED.fullmatch(name):
            return int(found[1], 16) // 10**9
        if found := WRITTEN.fullmatch(name):
            about = self.batch(found[1])
            if ended := about.get("completed_at") or about.get("cancelled_at"):
                return int(ended)
        raise _missing("files", name)

    def content(self, name: str) -> Path:
        """Where the file's content is. Raises NotFound."""
        self.file(name)
        return self.folder / "files" / name / "content"

    def open(self, name: str) -> BinaryIO:
        """The file's content, which can be read to its end when the file is deleted meanwhile. Raises NotFound."""
        try:
            return self.content(name).open("rb")
        except FileNotFoundError:
            raise _missing("files", name) from None

    def delete(self, name: str) -> None:
        """Raises NotFound, to all but one of those that delete it at once."""
        self.file(name)
        folder = self.folder / "files" / name
        hidden = folder.with_name(f".{name}-{secrets.token_hex(4)}")
        with self._lock(fcntl.LOCK_SH):
            try:
                folder.rename(hidden)  # so that nobody finds a part of it
            except FileNotFoundError:
                raise _missing("files", name) from None
            shutil.rmtree(hidden)

    def batches(self) -> list[dict[str, Any]]:
        """Every batch, the newest first."""
        return [self._as_it_is(about) for about in _newest_first(self.folder / "batches")]

    def batch(self, name: str) -> dict[str, Any]:
        """Raises NotFound."""
        return self._as_it_is(self._about("batches", name))

    def _as_it_is(self, about: dict[str, Any]) -> dict[str, Any]:
        """The batch's description, with whether its end was asked for."""
        asked = self.cancelling_at(about["id"])
        # Another process may have finished it just before `cancel` was written.
        if asked is None or not self.mark(about["id"]).exists():
            return about
        return about | {"status": "cancelling", "cancelling_at": asked}

    def cancelling_at(self, name: str) -> int | None:
        """When the batch's end was asked for, in seconds; None if it was not."""
        try:
            return int((self.batch_folder(name) / "cancel").stat().st_mtime)
        except FileNotFoundError:
            return None

    def create_batch(self, about: dict[str, Any]) -> None:
        """Add a batch that is to be answered. Leaves nothing of it where that fails, as on a full disk."""
        mark = self.mark(about["id"])
        mark.parent.mkdir(parents=True, exist_ok=True)
        with self._lock(fcntl.LOCK_SH):
            try:
                mark.touch()  # first: a batch without one would never be answered
                with replace_folder(self.batch_folder(about["id"])) as new:
                    (new / "about.json").write_bytes(orjson.dumps(about))
            except BaseException:
                mark.unlink(missing_ok=True)
                raise

    def cancel_batch(self, name: str) -> dict[str, Any]:
        """Ask for its end; returns its description. Raises NotFound."""
        self.batch(name)
        if self.mark(name).exists():
            with contextlib.suppress(FileExistsError):
                (self.batch_folder(name) / "cancel").touch(exist_ok=False)
        return self.batch(name)

    def unfinished(self) -> list[Path]:
        """The folders of batches that are not finished, the oldest first."""
        names = sorted(mark.name for mark in (self.folder / "unfinished").glob("*"))
        folders = [self.batch_folder(name) for name in names]  # an id begins with the time
        # A batch without a folder is being made, or was deleted.
        return [folder for folder in folders if folder.is_dir()]

    def mark(self, name: str) -> Path:
        """A file that exists until the batch is finished."""
        return self.folder / "unfinished" / name

    def move_marks(self) -> None:
        """Put the marks in their folder. Earlier versions left each in the batch's."""
        for mark in (self.folder / "batches").glob("*/unfinished"):
            moved = self.mark(mark.parent.name)
            moved.parent.mkdir(exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # another service does the same
                mark.replace(moved)

    def batch_folder(self, name: str) -> Path:
        return self.folder / "batches" / name

    def save_batch(self, about: dict[str, Any]) -> None:
        """Replace the batch's description."""
        path = self.batch_folder(about["id"]) / "about.json"
        write_file(path, lambda part: part.write_bytes(orjson.dumps(about)))

    def _about(self, kind: str, name: str) -> dict[str, Any]:
        if not ID.fullmatch(name):
            raise _missing(kind, name)
        try:
            content = (self.folder / kind / name / "about.json").read_bytes()
        except FileNotFoundError:
            raise _missing(kind, name) from None
        about: dict[str, Any] = orjson.loads(content)
        return about


def _missing(kind: str, name: str) -> NotFound:
    what = "file" if kind == "files" else "batch"
    return NotFound(f"there is no {what} {name[:100]!r}")


def new_id(kind: str) -> str:
    """It begins with the time: `created_at`, which is in seconds, says less about the order of two."""
    return f"{kind}-{time.time_ns():016x}{secrets.token_hex(8)}"


def _newest_first(folder: Path) -> list[dict[str, Any]]:
    found = list(_descriptions(folder))
    return sorted(found, key=place, reverse=True)


def place(about: Mapping[str, Any]) -> tuple[int, str]:
    """Lists are in this order, or in the reverse one."""
    return about["created_at"], about["id"]


def _descriptions(folder: Path) -> Iterator[dict[str, Any]]:
    for path in folder.glob("[!.]*/about.json"):
        try:
            yield orjson.loads(path.read_bytes())
        except FileNotFoundError:
            continue  # deleted meanwhile
