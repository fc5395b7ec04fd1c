"""OpenAI's files and batches, with OpenAI's client; a batch continues after its process was killed."""

import asyncio
import io
import itertools
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import openai
import pytest
from openai.types import Batch
from starlette.responses import FileResponse

from heedful.app.batches import file_store
from heedful.app.batches.batches import _chunks, _lines
from heedful.app.batches.file_store import FileStore, new_id
from heedful.app.errors import NotFound
from heedful.app.process.serve import check_files
from heedful.app.settings import Settings
from heedful.runtime.errors import StartupError
from tests.app.conftest import KEY, Serve, Start
from tests.app.test_errors import JSON, check, error_of
from tests.process import PATIENCE, Process, wait_for

LINES = 2000
BAD = {7, 500, 999}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture
def process(start: Start, folder: Path) -> Process:
    return start(files=str(folder), api_key=KEY)


@pytest.fixture
def client(process: Process) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{process.ready()}/v1", api_key=KEY, timeout=PATIENCE) as client:
        yield client


def line(number: int, url: str = "/v1/embeddings") -> dict[str, Any]:
    text = "" if number in BAD else f"kid {number}"
    body = {"input": text, "model": "tiny-flat"}
    return {"custom_id": f"row {number}", "method": "POST", "url": url, "body": body}


def upload(client: openai.OpenAI, lines: list[Any]) -> str:
    content = "".join(json.dumps(one) + "\n" for one in lines)
    return client.files.create(file=("rows.jsonl", content.encode()), purpose="batch").id


def create(client: openai.OpenAI, file: str) -> str:
    made = client.batches.create(
        input_file_id=file,
        endpoint="/v1/embeddings/",  # type: ignore[arg-type]  # as the route itself takes it
        completion_window="24h",
    )
    assert made.endpoint == "/v1/embeddings"
    return made.id


def ended(client: openai.OpenAI, batch: str) -> Batch:
    def ask() -> Batch | None:
        found = client.batches.retrieve(batch)
        return found if found.status in ("completed", "failed", "cancelled") else None

    return wait_for(ask, "the end of the batch")


def rows(client: openai.OpenAI, file: str | None) -> list[dict[str, Any]]:
    assert file is not None
    return [json.loads(one) for one in client.files.content(file).text.splitlines()]


def test_a_batch_killed_in_the_middle_ends_complete(
    start: Start, folder: Path, process: Process, client: openai.OpenAI
) -> None:
    batch = create(client, upload(client, [line(number) for number in range(LINES)]))
    part = folder / "batches" / batch / "answers.jsonl"
    wait_for(lambda: (part.exists() and part.stat().st_size > 20_000) or None, "some answers")
    process.popen.kill()
    process.popen.wait()
    written = part.read_bytes()
    assert 0 < written.count(b"\n") < LINES
    part.write_bytes(written[: written.rindex(b"\n") - 5])  # as if killed within a write
    again = start(files=str(folder), api_key=KEY)
    client = client.with_options(base_url=f"{again.ready()}/v1")
    done = ended(client, batch)
    assert done.status == "completed", done
    assert done.request_counts is not None
    assert done.request_counts.to_dict() == {"total": LINES, "completed": LINES - 3, "failed": 3}
    good, bad = rows(client, done.output_file_id), rows(client, done.error_file_id)
    wanted = [f"row {number}" for number in range(LINES) if number not in BAD]
    assert [row["custom_id"] for row in good] == wanted
    assert [row["custom_id"] for row in bad] == ["row 7", "row 500", "row 999"]
    assert bad[0]["response"]["status_code"] == 422
    assert bad[0]["response"]["body"]["error"]["param"] == "input"
    expected = client.embeddings.create(input="kid 998", model="tiny-flat", encoding_format="float")
    body = good[-1]["response"]["body"]
    assert body["data"][0]["embedding"] == pytest.approx(expected.data[0].embedding, abs=1e-5)
    assert sorted(path.name for path in part.parent.iterdir()) == ["about.json", "lock"]


def test_files_and_batches_as_openai_has_them(client: openai.OpenAI) -> None:
    lines: list[Any] = [line(1), "no object", {**line(2), "url": "/embed"}, {**line(3), "body": []}]
    lines.append({**line(4), "custom_id": "\ud800"})
    lines += [{**line(5), "method": "GET"}, {**line(6), "custom_id": 6}]
    cut = {"input": "kid " * 300, "model": "tiny-flat", "truncate": True, "beside": 1}
    lines.append({**line(8, "/v1/embeddings/"), "body": cut})
    file = upload(client, lines)
    assert client.files.retrieve(file).filename == "rows.jsonl"
    assert [one.id for one in client.files.list()] == [file]
    batch = create(client, file)
    content = ("rows.jsonl", b"")
    with pytest.raises(
        openai.UnprocessableEntityError, match=r"expires_after\[anchor\]: files are"
    ):
        client.files.create(
            file=content,
            purpose="batch",
            expires_after={"anchor": "created_at", "seconds": 3600},
        )
    done = ended(client, batch)
    good = rows(client, done.output_file_id)
    assert [row["custom_id"] for row in good] == ["row 1", "row 8"]
    notes = {"X-Truncated": "1", "X-Ignored-Fields": "beside"}
    assert [row["response"].get("headers") for row in good] == [None, notes]
    bad = rows(client, done.error_file_id)
    assert [row["custom_id"] for row in bad] == [None, "row 2", "row 3", None, "row 5", None]
    assert {row["response"]["status_code"] for row in bad} == {422}
    params = [row["response"]["body"]["error"]["param"] for row in bad]
    assert params == [None, "url", None, "custom_id", "method", "custom_id"]
    assert [one.id for one in client.batches.list()] == [batch]
    assert client.batches.cancel(batch).status == "completed"  # too late
    assert client.files.delete(file).deleted
    for call in (client.files.retrieve, client.files.delete, client.files.content):
        with pytest.raises(openai.NotFoundError, match="no file"):
            call(file)
    with pytest.raises(openai.NotFoundError, match="no file") as caught:
        create(client, file)
    assert caught.value.param == "input_file_id"
    with pytest.raises(openai.NotFoundError, match="no batch"):
        client.batches.retrieve("batch-none")
    with pytest.raises(openai.UnprocessableEntityError, match="takes no batches"):
        client.batches.create(
            input_file_id=upload(client, []),
            endpoint="/v1/chat/completions",
            completion_window="24h",
        )


def test_a_batch_may_be_cancelled(client: openai.OpenAI, process: Process) -> None:
    file = upload(client, [line(number) for number in range(50_000)])
    batch = create(client, file)
    wait_for(lambda: client.batches.retrieve(batch).status == "in_progress" or None, "its start")
    assert client.batches.cancel(batch).status in ("cancelling", "cancelled")
    done = ended(client, batch)
    assert done.status == "cancelled"
    assert done.cancelling_at is not None
    assert done.cancelled_at is not None
    assert done.created_at <= done.cancelling_at <= done.cancelled_at
    assert done.request_counts is not None
    assert 0 < len(rows(client, done.output_file_id)) == done.request_counts.completed < 50_000


@pytest.mark.anyio
async def test_a_batch_that_is_being_cancelled_is_so_in_the_list_too(
    serve: Serve, tmp_path: Path
) -> None:
    async with serve(start=False, files=tmp_path) as client:  # nobody answers the batch
        files = {"file": ("a.jsonl", json.dumps(line(1)).encode())}
        sent = await client.post("/v1/files", files=files, data={"purpose": "batch"})
        body = {"input_file_id": sent.json()["id"], "endpoint": "/v1/embeddings"}
        made = (await client.post("/v1/batches", json=body)).json()
        ends = ("cancelling_at", "cancelled_at", "completed_at", "failed_at")
        assert [made[name] for name in ends] == [None] * 4
        cancelled = (await client.post(f"/v1/batches/{made['id']}/cancel")).json()
        assert cancelled["status"] == "cancelling"
        assert cancelled["cancelling_at"] >= made["created_at"]
        os.utime(FileStore(tmp_path).batch_folder(made["id"]) / "cancel", (1, 1))
        again = (await client.post(f"/v1/batches/{made['id']}/cancel")).json()
        assert again == cancelled | {"cancelling_at": 1}  # when it was asked for first
        assert (await client.get("/v1/batches")).json()["data"] == [again]


@pytest.mark.anyio
async def test_a_batch_without_a_description_does_not_stop_the_others(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "unfinished").mkdir()
    for name, about in (("batch-1", None), ("batch-2", "{")):
        folder = tmp_path / "batches" / name
        folder.mkdir(parents=True)
        (tmp_path / "unfinished" / name).touch()
        if about is not None:
            (folder / "about.json").write_text(about)
    store = FileStore(tmp_path)
    async with serve(files=tmp_path) as client:
        while store.unfinished():
            await asyncio.sleep(0.01)
        files = {"file": ("a.jsonl", json.dumps(line(1)).encode())}
        sent = await client.post("/v1/files", files=files, data={"purpose": "batch"})
        body = {"input_file_id": sent.json()["id"], "endpoint": "/v1/embeddings"}
        batch = (await client.post("/v1/batches", json=body)).json()["id"]
        while (found := store.batch(batch))["status"] != "completed":
            await asyncio.sleep(0.01)
    assert found["request_counts"] == {"total": 1, "completed": 1, "failed": 0}
    assert "batch batch-1 failed" in caplog.text
    # A client that cancels while another process finishes the batch:
    (store.batch_folder(batch) / "cancel").touch()
    assert store.batch(batch)["status"] == "completed"


@pytest.mark.anyio
async def test_a_batch_whose_disk_is_full_waits_and_holds_no_other_up(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.app.batches.batches.RETRY_SECONDS", math.inf)
    store = FileStore(tmp_path)

    async def create(client: httpx.AsyncClient) -> str:
        files = {"file": ("a.jsonl", json.dumps(line(1)).encode())}
        sent = await client.post("/v1/files", files=files, data={"purpose": "batch"})
        body = {"input_file_id": sent.json()["id"], "endpoint": "/v1/embeddings"}
        name: str = (await client.post("/v1/batches", json=body)).json()["id"]
        return name

    async with serve(start=False, files=tmp_path) as idle:
        full = await create(idle)
    output = store.batch_folder(full) / "output.jsonl"
    output.symlink_to("/dev/full")
    (store.batch_folder(full) / ".about.json-0123abcd").touch()
    async with serve(files=tmp_path) as client:
        while "No space left" not in caplog.text:
            await asyncio.sleep(0.01)
        other = await create(client)
        while store.batch(other)["status"] != "completed":
            await asyncio.sleep(0.01)
    assert caplog.text.count(f"batch {full} waits") == 1
    assert store.batch(full)["status"] == "in_progress"
    assert not output.is_symlink()  # its part was removed, and left room
    async with serve(files=tmp_path):
        while store.batch(full)["status"] != "completed":
            await asyncio.sleep(0.01)
    assert store.batch(full)["request_counts"] == {"total": 1, "completed": 1, "failed": 0}
    content = store.content(store.batch(full)["output_file_id"])
    assert json.loads(content.read_bytes())["custom_id"] == "row 1"
    assert store.file(store.batch(full)["output_file_id"])["bytes"] == content.stat().st_size
    left = sorted(path.name for path in store.batch_folder(full).iterdir())
    assert left == ["about.json", "lock"]


@pytest.mark.anyio
async def test_a_line_that_is_longer_than_a_body_may_be_fails_alone(
    serve: Serve, tmp_path: Path
) -> None:
    store = FileStore(tmp_path)
    long = {**line(2), "body": {"input": "kid " * 16, "model": "tiny-flat"}}
    content = "\n".join(json.dumps(one) for one in (line(1), long, line(3), long, line(4)))
    async with serve(files=tmp_path, max_body_bytes=len(json.dumps(line(1)))) as client:
        file = store.add(io.BytesIO(content.encode()), "a", "batch")["id"]
        body = {"input_file_id": file, "endpoint": "/v1/embeddings"}
        sent = await client.post("/v1/batches", json=body)
        while (found := store.batch(sent.json()["id"]))["status"] != "completed":
            await asyncio.sleep(0.01)
    assert found["request_counts"] == {"total": 5, "completed": 3, "failed": 2}
    rows = map(json.loads, store.content(found["error_file_id"]).read_bytes().splitlines())
    codes = [row["response"]["body"]["error"]["code"] for row in rows]
    assert codes == ["body_too_large", "body_too_large"]


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_lines_are_cut_behind_their_limit(end: bytes) -> None:
    source = b"\n".join([b"a" * 5, b"", b"b" * 6, b"  ", b"c", b"d" * 200_000, b"e" * 5]) + end
    cut = [b"a" * 5, b"b" * 6, b"c", b"d" * 6, b"e" * 5]
    assert list(_lines(io.BytesIO(source), 5)) == cut
    assert list(_chunks(io.BytesIO(source), 1, 5)) == [[b"b" * 6], [b"c", b"d" * 6], [b"e" * 5]]


def test_the_marks_of_batches_that_are_not_finished(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for name in ("batch-3", "batch-1", "batch-2"):
        store.create_batch({"id": name})
    older = store.batch_folder("batch-0")
    older.mkdir()
    (older / "unfinished").touch()  # as earlier versions had them
    (store.batch_folder("batch-2") / "about.json").unlink()
    store.batch_folder("batch-2").rmdir()  # by hand
    check_files(Settings(files=tmp_path))
    assert [folder.name for folder in store.unfinished()] == ["batch-0", "batch-1", "batch-3"]
    assert list(older.iterdir()) == []
    (tmp_path / "unfinished" / "batch-1").unlink()
    assert [folder.name for folder in store.unfinished()] == ["batch-0", "batch-3"]


def test_a_file_that_is_deleted_twice_at_once_is_missing_for_one(tmp_path: Path) -> None:
    class Late(FileStore):
        def file(self, name: str) -> dict[str, Any]:
            found = super().file(name)
            FileStore(tmp_path).delete(name)
            return found

    check_files(Settings(files=tmp_path))
    name = FileStore(tmp_path).add(io.BytesIO(b"a"), "a", "batch")["id"]
    with pytest.raises(NotFound, match=name):
        Late(tmp_path).delete(name)
    assert list((tmp_path / "files").iterdir()) == []


@pytest.mark.anyio
async def test_a_content_that_is_deleted_while_it_is_sent_is_sent_whole(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_files(Settings(files=tmp_path))
    store = FileStore(tmp_path)
    name = store.add(io.BytesIO(b"a" * 100_000), "a", "batch")["id"]

    async def late(answer: FileResponse, *channels: Any) -> None:
        store.delete(name)
        await send(answer, *channels)

    send = FileResponse.__call__
    monkeypatch.setattr(FileResponse, "__call__", late)
    async with serve(start=False, files=tmp_path) as client:
        sent = await client.get(f"/v1/files/{name}/content")
        assert (sent.status_code, len(sent.content)) == (200, 100_000)
        check(await client.get(f"/v1/files/{name}/content"), 404, "not_found")


@pytest.mark.anyio
async def test_a_range_of_a_content(serve: Serve, tmp_path: Path) -> None:
    check_files(Settings(files=tmp_path))
    store = FileStore(tmp_path)
    name = store.add(io.BytesIO(b"0123456789"), "a", "batch")["id"]
    async with serve(start=False, files=tmp_path) as client:

        async def ask(asked: str, method: str = "GET") -> httpx.Response:
            headers = {"Range": asked}
            return await client.request(method, f"/v1/files/{name}/content", headers=headers)

        for asked, sent in (
            ("bytes=4-", b"456789"),
            ("Bytes=0-1", b"01"),
            ("bytes=8-99", b"89"),
            ("bytes=-3", b"789"),
            ("bytes=-99", b"0123456789"),
        ):
            answer = await ask(asked)
            assert (answer.status_code, answer.content) == (206, sent)
            first = 10 - len(sent) if sent[-1:] == b"9" else 0
            assert answer.headers["Content-Range"] == f"bytes {first}-{first + len(sent) - 1}/10"
        for asked in ("bytes=10-", "bytes=99-100", "bytes=-0"):  # the answer was text
            answer = await ask(asked)
            check(answer, 416, "range_not_satisfiable")
            assert answer.headers["Content-Range"] == "bytes */10"
        assert (await ask("bytes=10-", "HEAD")).status_code == 416
        # These were refused, with text too, but for several ranges.
        for asked in ("bytes=5-2", "bytes=x", "bytes=", "lines=0-1", "4-", "bytes=0-1,4-5"):
            answer = await ask(asked)
            assert (answer.status_code, answer.content) == (200, b"0123456789")


@pytest.mark.anyio
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_files_are_deleted_page_by_page(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """As `for file in client.files.list(limit=2): client.files.delete(file.id)`."""
    now = 1_800_000_000
    clock = SimpleNamespace(time=lambda: now, time_ns=itertools.count(now * 10**9).__next__)
    monkeypatch.setattr(file_store, "time", clock)
    check_files(Settings(files=tmp_path))
    store = FileStore(tmp_path)
    batch = new_id("batch")
    store.create_batch({"id": batch, "cancelled_at": now})
    for number in range(7):
        kind = {2: "output", 3: "error"}.get(number)
        store.add(io.BytesIO(b""), "a", "batch", kind and f"file-{batch}-{kind}")
    async with serve(start=False, files=tmp_path) as client:
        query: dict[str, str | int] = {"limit": 2, "order": order}
        more = True
        while more:
            page = (await client.get("/v1/files", params=query)).json()
            for one in page["data"]:
                assert (await client.delete(f"/v1/files/{one['id']}")).status_code == 200
            more = page["has_more"]
            query["after"] = page["last_id"]
        assert store.files() == []
        for never in ("file-1", f"file-{new_id('batch')}-output"):
            answer = await client.get("/v1/files", params={"after": never})
            check(answer, 422, "invalid_input", "after")


def test_a_file_whose_deletion_was_killed_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_files(Settings(files=tmp_path))
    store = FileStore(tmp_path)
    name = store.add(io.BytesIO(b"a"), "a", "batch")["id"]
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.delete(name)
    assert store.files() == []
    check_files(Settings(files=tmp_path))
    assert list((tmp_path / "files").iterdir()) == []


@pytest.mark.parametrize("broken", ["unfinished", "batches"])
def test_a_batch_that_cannot_be_made_leaves_nothing(tmp_path: Path, broken: str) -> None:
    store = FileStore(tmp_path)
    (tmp_path / broken).touch()  # no folder: nothing can be written there
    with pytest.raises((FileExistsError, NotADirectoryError)):
        store.create_batch({"id": "batch-1", "created_at": 0})
    assert store.batches() == []
    assert list(tmp_path.glob("*/*")) == []


@pytest.mark.anyio
async def test_a_batch_that_fails_leaves_its_description(serve: Serve, tmp_path: Path) -> None:
    check_files(Settings(files=tmp_path))
    store = FileStore(tmp_path)
    about = {"id": "batch-1", "input_file_id": "file-1", "in_progress_at": None}  # deleted
    store.create_batch(about)
    folder = store.batch_folder("batch-1")
    for part in ("answers", "output", "error"):
        (folder / f"{part}.jsonl").touch()  # of a process that was killed
    async with serve(files=tmp_path):
        while store.unfinished():
            await asyncio.sleep(0.01)
    assert store.batch("batch-1")["status"] == "failed"
    assert sorted(path.name for path in folder.iterdir()) == ["about.json", "lock"]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["files", "batches"])
async def test_the_event_loop_runs_while_a_list_is_read(
    serve: Serve, tmp_path: Path, kind: str
) -> None:
    pipe = tmp_path / kind / "one" / "about.json"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    loop, ran = asyncio.get_running_loop(), threading.Event()

    def write() -> bool:
        with pipe.open("w") as out:  # waits for the reader
            loop.call_soon_threadsafe(ran.set)
            in_time = ran.wait(10)
            out.write(json.dumps({"id": "one", "created_at": 1, "purpose": "batch"}))
        return in_time

    with ThreadPoolExecutor() as thread:
        writing = thread.submit(write)
        async with serve(start=False, files=tmp_path) as idle:
            found = (await idle.get(f"/v1/{kind}")).json()["data"]
        assert [one["id"] for one in found] == ["one"]
        assert writing.result()


ADD = """
import io, os, signal, sys
from pathlib import Path
from heedful.app.batches.file_store import FileStore
class Content(io.BytesIO):
    def read(self, size=-1):
        found = super().read(size)
        if not found:
            print(flush=True)
            sys.stdin.read()
        return found
FileStore(Path(sys.argv[1])).add(Content(b"a secret text"), "a", "batch")
"""


def test_what_a_killed_upload_leaves_is_removed_at_the_next_start(tmp_path: Path) -> None:
    settings = Settings(files=tmp_path)
    check_files(settings)
    kept = FileStore(tmp_path).add(io.BytesIO(b"kept"), "a", "batch")["id"]
    command = [sys.executable, "-c", ADD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as adding:
        assert adding.stdout
        adding.stdout.readline()
        check_files(settings)  # another service on the same folder starts: the upload goes on
        [unfinished] = (tmp_path / "files").glob(".*")
        adding.kill()
    assert unfinished.exists()
    check_files(settings)
    assert [path.name for path in (tmp_path / "files").iterdir()] == [kept]


@pytest.mark.anyio
async def test_without_a_folder_they_are_refused(serve: Serve, tmp_path: Path) -> None:
    async with serve(start=False) as idle:
        for method, path in (
            ("GET", "/v1/files"),
            ("GET", "/v1/files/file-1"),
            ("GET", "/v1/batches"),
            ("GET", "/v1/batches/batch-1"),
            ("POST", "/v1/files"),
        ):
            answer = await idle.request(method, path)
            assert "HEEDFUL_FILES" in check(answer, 403, "files_not_set")["message"]
        body = {"input_file_id": "file-1", "endpoint": "/embed"}
        check(await idle.post("/v1/batches", json=body), 403, "files_not_set")
    async with serve(start=False, files=tmp_path / "files", max_file_bytes=1000) as idle:
        await refused_uploads(idle)
    async with serve(start=False, files=tmp_path / "files", request_timeout=0.1) as idle:
        multipart = {"Content-Type": "multipart/form-data; boundary=X"}
        answer = await idle.post("/v1/files", content=stuck(), headers=multipart)
        check(answer, 504, "timeout")
        check(await idle.post("/v1/batches", content=stuck(), headers=JSON), 504, "timeout")


async def stuck() -> AsyncIterator[bytes]:
    yield b"--X\r\n"
    await asyncio.Event().wait()


def test_a_folder_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    check_files(Settings())
    check_files(Settings(files=tmp_path / "made" / "files"))
    assert [path.name for path in (tmp_path / "made" / "files").iterdir()] == ["lock"]
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none")):
        with pytest.raises(StartupError, match=f"HEEDFUL_FILES: {folder}: .*: name a folder"):
            check_files(Settings(files=folder))
    (tmp_path / "made" / "files" / "batches").touch()  # as root, no mode stops this test
    with pytest.raises(StartupError, match=r"made/files/batches: .*: name a folder"):
        check_files(Settings(files=tmp_path / "made" / "files"))


@pytest.mark.anyio
async def test_a_folder_that_is_no_longer_writable_is_told(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(start=False, files=tmp_path) as idle:
        files = {"file": ("a.jsonl", b"{}")}
        sent = await idle.post("/v1/files", files=files, data={"purpose": "batch"})
        file = sent.json()["id"]
        (tmp_path / "lock").unlink()
        (tmp_path / "lock").symlink_to("/sys/none")  # where nobody may make a file
        body = {"input_file_id": file, "endpoint": "/embed"}
        for answer in (
            await idle.post("/v1/files", files=files, data={"purpose": "batch"}),
            await idle.post("/v1/batches", json=body),
            await idle.delete(f"/v1/files/{file}"),
        ):
            message = check(answer, 507, "storage_not_writable")["message"]
            assert str(tmp_path) not in message
        causes = [line for line in caplog.messages if "cannot be written to: [Errno" in line]
        assert len(causes) == 3
        assert all(line.endswith(f": '{tmp_path}/lock'") for line in causes)
        assert (await idle.get("/v1/files")).json()["data"] == [sent.json()]


@pytest.mark.anyio
async def test_lists_are_read_in_pages(serve: Serve, tmp_path: Path) -> None:
    async with serve(start=False, files=tmp_path) as idle:

        async def pages(path: str, limit: int, **more: str) -> list[list[str]]:
            """The ids of each page, read as OpenAI's client does."""
            found: list[list[str]] = []
            while True:
                page = (await idle.get(path, params={"limit": limit, **more})).json()
                found.append([one["id"] for one in page["data"]])
                assert [page["first_id"], page["last_id"]] == [found[-1][0], found[-1][-1]]
                if not page["has_more"]:
                    return found
                more["after"] = found[-1][-1]

        files: list[str] = []
        batches: list[str] = []
        for number in range(5):
            data = {"purpose": "batch" if number % 2 else "evals"}
            made = await idle.post("/v1/files", files={"file": ("a", b"")}, data=data)
            files.insert(0, made.json()["id"])
            body = {"input_file_id": files[0], "endpoint": "/v1/embeddings"}
            batches.insert(0, (await idle.post("/v1/batches", json=body)).json()["id"])
        for path, ids, most in (("/v1/files", files, 10_000), ("/v1/batches", batches, 100)):
            assert await pages(path, 2) == [ids[:2], ids[2:4], ids[4:]]
            assert await pages(path, most) == [ids]
            for wrong in ("abc", "0", str(most + 1)):
                answer = await idle.get(path, params={"limit": wrong})
                check(answer, 422, "invalid_value", "limit")
            check(await idle.get(path, params={"after": "x"}), 422, "invalid_input", "after")
        assert await pages("/v1/files", 1, purpose="batch") == [[files[1]], [files[3]]]
        assert await pages("/v1/files", 3, order="asc") == [files[:1:-1], files[1::-1]]
        page = (await idle.get("/v1/files", params={"purpose": "none"})).json()
        assert page == {
            "object": "list",
            "data": [],
            "first_id": None,
            "last_id": None,
            "has_more": False,
        }


@pytest.mark.anyio
async def test_what_a_batch_keeps_of_its_request(serve: Serve, tmp_path: Path) -> None:
    async with serve(start=False, files=tmp_path) as idle:
        data = {"purpose": "batch"}
        file = (await idle.post("/v1/files", files={"file": ("a", b"")}, data=data)).json()["id"]
        body: dict[str, Any] = {"input_file_id": file, "endpoint": "/embed"}
        beside = {"metadata": {"a": "b"}, "completed_at": "never", "usage": {"total": 1}}
        made = await idle.post("/v1/batches", json=body | beside)
        assert made.headers["X-Ignored-Fields"] == "completed_at, usage"
        assert made.json()["metadata"] == {"a": "b"}
        assert made.json()["completed_at"] is None
        assert not {"usage", "output_expires_after"} & made.json().keys()
        assert (await idle.get(f"/v1/batches/{made.json()['id']}")).json() == made.json()
        expires = {"anchor": "created_at", "seconds": 3600}
        answer = await idle.post("/v1/batches", json=body | {"output_expires_after": expires})
        check(answer, 422, "unsupported", "output_expires_after")
        for wrong in ({"a" * 65: ""}, {"a": "b" * 513}, {str(i): "" for i in range(17)}):
            answer = await idle.post("/v1/batches", json=body | {"metadata": wrong})
            assert answer.status_code == 422
            assert error_of(answer)["param"].startswith("metadata")


async def refused_uploads(idle: httpx.AsyncClient) -> None:
    content = {"file": ("a.jsonl", b"{}\n")}
    check(await idle.post("/v1/files", json={}), 422, "invalid_input", "file")
    check(await idle.post("/v1/files", files=content), 422, "invalid_input", "purpose")
    gzipped = {"Content-Encoding": "gzip"}
    answer = await idle.post("/v1/files", files=content, data={"purpose": "batch"}, headers=gzipped)
    check(answer, 400, "wrong_content_encoding")
    large = {"file": ("a.jsonl", b" " * 1000)}
    data = {"purpose": "batch"}
    without_a_name = {"purpose": (None, "batch"), "file": (None, "a.jsonl")}  # curl -F file=a.jsonl
    message = check(
        await idle.post("/v1/files", files=without_a_name), 422, "invalid_input", "file"
    )["message"]
    assert "multipart" not in message  # it was
    assert "file=@" in message
    check(await idle.post("/v1/files", files=large, data=data), 413, "body_too_large")
    for name, code in (
        ("%2e%2e", "not_found"),
        ("a.b", "not_found"),
        ("file-1", "not_found"),
        ("x%2F..", "route_not_found"),
    ):
        check(await idle.get(f"/v1/files/{name}"), 404, code)
    answer = await idle.post("/v1/files", files=content, data=data)
    assert answer.json()["bytes"] == 3
    batch = {"input_file_id": answer.json()["id"], "endpoint": "/embed"}
    for more, code, param in (
        ({"metadata": {"a": "\ud800"}}, "invalid_value", "metadata.a"),
        ({"completion_window": "\ud800"}, "invalid_input", "completion_window"),
        ({"metadata": {str(i): i for i in range(1000)}}, "invalid_value", "metadata"),
    ):
        sent = json.dumps({**batch, **more}).encode()
        check(await idle.post("/v1/batches", content=sent, headers=JSON), 422, code, param)
    ndjson = {"Content-Type": "application/x-ndjson"}
    sent = json.dumps(batch).encode()
    check(await idle.post("/v1/batches", content=sent, headers=ndjson), 400, "wrong_content_type")
    assert (await idle.get("/v1/batches")).json()["data"] == []
    parts = ('name="purpose"', 'name="file"; filename="\\ud800"')
    body = "".join(
        f"--X\r\nContent-Disposition: form-data; {part}\r\n\r\nbatch\r\n" for part in parts
    )
    multipart = {"Content-Type": "multipart/form-data; boundary=X; charset=unicode_escape"}
    answer = await idle.post("/v1/files", content=f"{body}--X--\r\n".encode(), headers=multipart)
    check(answer, 422, "invalid_input", "file")
    many = {"purpose": "batch", **{f"x{i}": "" for i in range(8)}}
    answer = await idle.post("/v1/files", files=content, data=many)
    check(answer, 400, "invalid_body")
    for name in ("a" * 256, "é" * 100):  # more bytes than a file's name may have
        for method in ("GET", "DELETE"):
            check(await idle.request(method, f"/v1/files/{name}"), 404, "not_found")
        check(await idle.get(f"/v1/batches/{name}"), 404, "not_found")
        unknown = {"input_file_id": name, "endpoint": "/embed"}
        check(await idle.post("/v1/batches", json=unknown), 404, "not_found", "input_file_id")
