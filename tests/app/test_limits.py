"""Time limit, full queue and disconnecting clients, with a stopped parse process."""

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from starlette.types import Message

from heedful.app.middleware import CLIENT_CLOSED
from tests.app.conftest import Serve
from tests.app.test_errors import JSON, check
from tests.process import PATIENCE

pytestmark = pytest.mark.anyio

BODY = {"inputs": ["a", "b"], "model": "tiny-nli"}  # a model that needs the tree
QUEUED = 'heedful_queue_inputs{stage="parse"} 2.0'


@contextlib.contextmanager
def stalled(workers: set[int]) -> Iterator[None]:
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGCONT)


async def queued(client: httpx.AsyncClient) -> None:
    """Wait until both inputs of BODY wait for a parse process."""
    async with asyncio.timeout(PATIENCE):
        while QUEUED not in (await client.get("/metrics")).text:
            await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
async def tight(serve: Serve) -> AsyncIterator[tuple[httpx.AsyncClient, set[int]]]:
    """A service with a queue of two inputs and two seconds, and the ids of its workers."""
    before = {child.pid for child in multiprocessing.active_children()}
    # No cache: it would answer while the workers stand still.
    async with serve(
        cache_items=0,
        max_queue=2,
        max_batch_inputs=2,
        request_timeout=2,
        cors_origins=("https://a.example",),
    ) as client:
        after = {child.pid for child in multiprocessing.active_children()}
        yield client, {pid for pid in after - before if pid is not None}


async def test_504_at_the_time_limit_and_the_work_is_dropped(
    tight: tuple[httpx.AsyncClient, set[int]],
) -> None:
    client, workers = tight
    with stalled(workers):
        error = check(await client.post("/embed", json=BODY), 504, "timeout")
        assert error["type"] == "timeout_error"
        assert "2 s" in error["message"]
        # Its inputs have left the queue: the next one waits for the worker, and is not refused.
        waiting = asyncio.create_task(client.post("/embed", json=BODY))
        await queued(client)
    assert (await waiting).status_code == 200


async def test_504_when_the_body_never_ends(tight: tuple[httpx.AsyncClient, set[int]]) -> None:
    client, _ = tight

    async def stuck() -> AsyncIterator[bytes]:
        yield b'{"inputs": '
        await asyncio.Event().wait()

    check(await client.post("/embed", content=stuck(), headers=JSON), 504, "timeout")


async def test_429_refuses_the_whole_request_and_says_when_to_return(
    tight: tuple[httpx.AsyncClient, set[int]],
) -> None:
    client, workers = tight
    with stalled(workers):
        first = asyncio.create_task(client.post("/embed", json=BODY))
        await queued(client)
        answer = await client.post("/embed", json={**BODY, "inputs": "c"})
        error = check(answer, 429, "overloaded")
        assert error["type"] == "rate_limit_error"
        assert int(answer.headers["Retry-After"]) >= 1
    assert (await first).status_code == 200


async def test_the_queue_one_to_either_side(tight: tuple[httpx.AsyncClient, set[int]]) -> None:
    """Two inputs fit, a third does not."""
    client, workers = tight
    bodies = [{**BODY, "inputs": text} for text in "abc"]
    with stalled(workers):
        tasks = [asyncio.create_task(client.post("/embed", json=body)) for body in bodies]
        done, fitting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    check(done.pop().result(), 429, "overloaded")
    assert [(await task).status_code for task in fitting] == [200, 200]


async def post_and_go(
    client: httpx.AsyncClient, body: bytes, *, more_body: bool, gone: asyncio.Event
) -> list[int]:
    """POST /embed from a client that goes away at `gone`; the statuses it would have been sent."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": more_body}]
    statuses: list[int] = []

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/embed",
        "raw_path": b"/embed",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json")],
        "http_version": "1.1",
        "scheme": "http",
    }
    transport = client._transport
    assert isinstance(transport, httpx.ASGITransport)
    await transport.app(scope, receive, send)
    return statuses


async def test_a_client_that_goes_away_has_its_work_dropped(
    tight: tuple[httpx.AsyncClient, set[int]],
) -> None:
    client, workers = tight
    gone = asyncio.Event()
    with stalled(workers):
        request = asyncio.create_task(
            post_and_go(client, json.dumps(BODY).encode(), more_body=False, gone=gone)
        )
        await queued(client)
        check(await client.post("/embed", json=BODY), 429, "overloaded")  # it holds the queue
        gone.set()
        assert await request == [CLIENT_CLOSED]
        # The queue is free again: this one waits for the worker, and is not refused.
        waiting = asyncio.create_task(client.post("/embed", json=BODY))
        await queued(client)
    assert (await waiting).status_code == 200
    page = (await client.get("/metrics")).text
    assert 'heedful_requests_total{model="tiny-nli",route="/embed",status="499"} 1.0' in page


async def test_a_client_that_goes_away_inside_its_body_is_no_fault(
    tight: tuple[httpx.AsyncClient, set[int]], caplog: pytest.LogCaptureFixture
) -> None:
    client, _ = tight
    gone = asyncio.Event()
    gone.set()
    assert await post_and_go(client, b'{"inputs": ', more_body=True, gone=gone) == [CLIENT_CLOSED]
    assert not [entry for entry in caplog.records if entry.exc_info]


async def test_what_a_dying_worker_held_is_answered_by_the_next(serve: Serve) -> None:
    before = {child.pid for child in multiprocessing.active_children()}
    async with serve(request_timeout=PATIENCE) as client:
        after = {child.pid for child in multiprocessing.active_children()}
        workers = {pid for pid in after - before if pid is not None}
        with stalled(workers):
            request = asyncio.create_task(client.post("/embed", json=BODY))
            await queued(client)
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            assert (await request).status_code == 200
        async with asyncio.timeout(PATIENCE):
            while (await client.get("/ready")).status_code != 200:
                await asyncio.sleep(0.05)


async def test_browsers_may_call_from_the_origins_that_are_set(
    tight: tuple[httpx.AsyncClient, set[int]],
) -> None:
    client, _ = tight
    for origin, allowed in (
        ("https://a.example", "https://a.example"),
        ("https://b.example", None),
    ):
        answer = await client.post("/embed", json={"inputs": ""}, headers={"Origin": origin})
        assert answer.headers.get("Access-Control-Allow-Origin") == allowed
        assert answer.status_code == 422


async def test_a_preflight_that_is_refused_gets_the_envelope(
    tight: tuple[httpx.AsyncClient, set[int]],
) -> None:
    client, _ = tight
    for origin, status in (("https://a.example", 200), ("https://b.example", 400)):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answer = await client.options("/embed", headers=headers)
        assert answer.status_code == status
        assert "Origin" in answer.headers["Vary"]
        if status == 400:
            message = check(answer, 400, "cors_refused")["message"]
            assert "origin" in message
            assert "HEEDFUL_CORS_ORIGINS" in message
            assert "Access-Control-Allow-Origin" not in answer.headers
