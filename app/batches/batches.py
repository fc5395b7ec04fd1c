"""Batches: a file of requests, answered in the background and resumed after a restart."""

import asyncio
import fcntl
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from fastapi import FastAPI

from heedful.app import errors
from heedful.app.batches.file_store import FileStore
from heedful.app.http.body import parse
from heedful.app.http.lines import InferenceEndpoint, answer
from heedful.app.http.paths import without_slash
from heedful.app.http.responses import repeatable
from heedful.files.atomic import remove_parts
from heedful.runtime.errors import BadInput, Unavailable

log = logging.getLogger("heedful.batches")

CHUNK = 64
"""Lines answered together, and then written together: fewer where they hold more bytes than one may."""
SKIP_BYTES = 64 * 1024
"""How much is read at a time of what a line that is too long has beyond its limit."""
POLL_SECONDS = 1.0
RETRY_SECONDS = 30.0
"""Until a batch is tried again that failed on the disk, which may be full."""
SAVE_SECONDS = 1.0
"""How often a batch's counts are written."""


class Batches:
    """Answers the batches of the store, one at a time. A batch is locked, so that one process has it.

    `answers.jsonl` grows in the order of the input: its whole lines tell where to resume.
    """

    def __init__(
        self,
        app: FastAPI,
        store: FileStore,
        routes: Mapping[str, InferenceEndpoint],
        max_bytes: int,
    ) -> None:
        """`max_bytes` is the limit of a line."""
        self._app = app
        self._store = store
        self._routes = routes
        self._max_bytes = max_bytes
        self._retries: dict[Path, float] = {}  # a batch's folder -> time.monotonic()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                for folder in self._store.unfinished():
                    if time.monotonic() >= self._retries.get(folder, 0.0):
                        await self._work_on(folder)
            except Exception:
                log.exception("the batches wait")
            await asyncio.sleep(POLL_SECONDS)

    async def _work_on(self, folder: Path) -> None:
        """Answer the batch unless another process does."""
        try:
            with _locked(folder) as got:
                if got and self._store.mark(folder.name).exists():
                    await self._work(folder.name)
        except Unavailable:
            pass  # the models are loading, or the service is stopping: later
        except OSError as error:
            log.error("batch %s waits for %g s: %s", folder.name, RETRY_SECONDS, error)
            self._retries[folder] = time.monotonic() + RETRY_SECONDS
        except Exception:
            log.exception("batch %s failed", folder.name)
            self._fail(folder)

    def _fail(self, folder: Path) -> None:
        """End the batch as failed. One whose description is missing or broken is not tried again."""
        try:
            self._finish(self._store.batch(folder.name), "failed")
        except (errors.NotFound, ValueError):
            self._store.mark(folder.name).unlink(missing_ok=True)

    async def _work(self, name: str) -> None:
        """Answer what has no answer yet, then write the output. Raises Unavailable, OSError."""
        about = self._store.batch(name)
        folder = self._store.batch_folder(name)
        try:
            source = self._store.content(about["input_file_id"])
        except errors.NotFound:
            about["errors"] = _failure("the input file was deleted")
            self._finish(about, "failed")
            return
        total = await asyncio.to_thread(_count, source, self._max_bytes)
        done, failed = await asyncio.to_thread(_repair, folder / "answers.jsonl")
        about |= {"status": "in_progress", "in_progress_at": about["in_progress_at"] or _now()}
        saved = 0.0
        with source.open("rb") as lines, (folder / "answers.jsonl").open("ab") as out:
            chunks = _chunks(lines, done, self._max_bytes)
            while chunk := await asyncio.to_thread(next, chunks, None):
                if (folder / "cancel").exists():
                    break
                rows = await asyncio.gather(*(self._answer(line, about) for line in chunk))
                out.write(b"".join(row for row, _ in rows))
                out.flush()
                done += len(rows)
                failed += sum(not succeeded for _, succeeded in rows)
                about["request_counts"] = _counts(total, done, failed)
                if time.monotonic() - saved > SAVE_SECONDS:
                    saved = time.monotonic()
                    self._store.save_batch(about)
        await asyncio.to_thread(self._write_output, about)
        about["request_counts"] = _counts(total, done, failed)
        if done == total:
            self._finish(about, "completed")
        else:
            about["cancelling_at"] = self._store.cancelling_at(name)
            self._finish(about, "cancelled")

    async def _answer(self, line: bytes, about: dict[str, Any]) -> tuple[bytes, bool]:
        """OpenAI's line for one request, and whether it succeeded. Raises Unavailable."""
        endpoint = self._routes[about["endpoint"]]
        custom_id: object = None

        def body() -> Any:
            nonlocal custom_id
            if len(line) > self._max_bytes:
                raise errors.line_too_long(self._max_bytes)
            value = parse(line)
            if not isinstance(value, dict):
                raise BadInput("the line must be an object with custom_id, method, url and body")
            sent = value.get("custom_id")
            if not isinstance(sent, str):
                raise BadInput("custom_id: must be a text, which its answer has", param="custom_id")
            custom_id = repeatable(sent, "custom_id")
            if value.get("method") != "POST":
                raise BadInput("method: must be POST", param="method")
            url = value.get("url")
            if not isinstance(url, str) or without_slash(url) != about["endpoint"]:
                raise BadInput(
                    f"url: must be the batch's endpoint, {about['endpoint']}", param="url"
                )
            return value.get("body")

        scope = {
            "type": "http",
            "app": self._app,
            "method": "POST",
            "path": endpoint.path,
            "headers": [],
        }
        response, entry = await answer(scope, endpoint, len(line), body, None, bulk=True)
        if response.status_code == errors.STATUS[Unavailable]:
            raise Unavailable("the service cannot answer now")
        answered: dict[str, Any] = {"status_code": response.status_code, "request_id": entry.id}
        if headers := entry.notes():  # that it was cut, for one: OpenAI's response has none
            answered["headers"] = headers
        answered["body"] = orjson.Fragment(response.body)
        row = {
            "id": f"batch_req_{entry.id}",
            "custom_id": custom_id,
            "response": answered,
            "error": None,
        }
        return orjson.dumps(row) + b"\n", response.status_code == 200

    def _write_output(self, about: dict[str, Any]) -> None:
        """Divide the answers into OpenAI's two files, which have the same names after a second try."""
        folder = self._store.batch_folder(about["id"])
        for field, wanted in (("output", True), ("error", False)):
            part = folder / f"{field}.jsonl"
            try:
                with (folder / "answers.jsonl").open("rb") as answers, part.open("wb") as out:
                    out.writelines(line for line in answers if _succeeded(line) == wanted)
                if part.stat().st_size:
                    filename = f"{about['id']}_{field}.jsonl"
                    name = f"file-{about['id']}-{field}"
                    made = self._store.add(part, filename, "batch_output", name)
                    about[f"{field}_file_id"] = made["id"]
            finally:
                part.unlink(missing_ok=True)  # on a full disk too, where others may need the room

    def _finish(self, about: dict[str, Any], status: str) -> None:
        self._store.save_batch(about | {"status": status, f"{status}_at": _now()})
        folder = self._store.batch_folder(about["id"])
        for field in ("answers", "output", "error"):
            (folder / f"{field}.jsonl").unlink(missing_ok=True)
        self._store.mark(about["id"]).unlink(missing_ok=True)
        (folder / "cancel").unlink(missing_ok=True)
        remove_parts(folder / "about.json")
        log.info("batch %s %s", about["id"], status)


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Whether no other process works on the batch. The lock ends with the process, however it ends."""
    with (folder / "lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _lines(source: BinaryIO, max_bytes: int) -> Iterator[bytes]:
    """The lines that are not blank, without their ends. Of one of more than `max_bytes`, one byte more than those."""
    while line := source.readline(max_bytes + 1):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = source.readline(SKIP_BYTES)
        if line.strip():
            yield line.removesuffix(b"\n")


def _chunks(source: BinaryIO, skip: int, max_bytes: int) -> Iterator[list[bytes]]:
    """The lines after the first `skip`, up to CHUNK at a time, or until they hold more than `max_bytes`."""
    chunk: list[bytes] = []
    size = 0
    for line in islice(_lines(source, max_bytes), skip, None):
        chunk.append(line)
        size += len(line)
        if len(chunk) == CHUNK or size > max_bytes:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _count(source: Path, max_bytes: int) -> int:
    with source.open("rb") as file:
        return sum(1 for _ in _lines(file, max_bytes))


def _repair(answers: Path) -> tuple[int, int]:
    """Cut a line that was not written to its end; returns how many answers there are, and errors of them."""
    answers.touch()
    done = failed = whole = 0
    with answers.open("r+b") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            done += 1
            failed += not _succeeded(line)
        file.truncate(whole)
    return done, failed


def _succeeded(line: bytes) -> bool:
    return bool(orjson.loads(line)["response"]["status_code"] == 200)


def _counts(total: int, done: int, failed: int) -> dict[str, int]:
    return {"total": total, "completed": done - failed, "failed": failed}


def _failure(message: str) -> dict[str, Any]:
    error = {"code": "invalid_input", "message": message, "param": "input_file_id", "line": None}
    return {"object": "list", "data": [error]}


def _now() -> int:
    return int(time.time())
