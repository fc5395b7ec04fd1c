"""application/x-ndjson: a request a line, answered in order while the client still sends."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from typing import Any, NoReturn

import httpx
import numpy as np
import pytest

from heedful.app.http.ndjson import _lines
from heedful.runtime.errors import TimedOut
from heedful.runtime.service import Service
from tests.app.conftest import KEY, Serve
from tests.app.test_answers import TEXTS, embed
from tests.app.test_errors import check
from tests.process import PATIENCE, Process

pytestmark = pytest.mark.anyio
NDJSON = {"Content-Type": "application/x-ndjson"}


async def answers(client: httpx.AsyncClient, path: str, *lines: object) -> list[dict[str, Any]]:
    body = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    answer = await client.post(path, content=body.encode(), headers=NDJSON)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_each_line_is_answered_in_order_with_its_id(client: httpx.AsyncClient) -> None:
    rows = await embed(client, TEXTS)
    lines = [{"inputs": text, "id": f"text {i}"} for i, text in enumerate(TEXTS)]
    found = await answers(client, "/embed", *lines)
    assert [one["line"] for one in found] == [0, 1, 2, 3, 4]
    assert [one["id"] for one in found] == [line["id"] for line in lines]
    np.testing.assert_allclose([one["answer"][0] for one in found], rows, atol=1e-6)


async def test_a_byte_order_mark_costs_no_line(client: httpx.AsyncClient) -> None:
    plain = await answers(client, "/embed", {"inputs": "kids"}, {"inputs": "dog"})
    marked = await answers(client, "/embed", '\ufeff{"inputs": "kids"}', '{"inputs": "dog"}\r')
    assert marked == plain
    body = b'\xef\xbb\xbf{"inputs": "kids"}'
    alone = await client.post("/embed", content=body, headers={"Content-Type": "application/json"})
    assert alone.json() == plain[0]["answer"]


async def test_errors_are_the_lines(client: httpx.AsyncClient) -> None:
    found = await answers(
        client,
        "/classify",
        {"inputs": "kids", "id": 1},
        "no json",
        "",
        {"inputs": ["kids", ""], "id": 2},
        {"inputs": "kids", "colour": "red"},
        {"inputs": "kids", "model": "bert", "id": None},
        "[]",
        '{"inputs": "kids", "id": "\\ud800"}',
        {"inputs": "kids", "id": json.loads("[" * 300 + "]" * 300)},
        '{"inputs": "kids", "x": ' + '{"a":' * 500 + "1" + "}" * 501,
        {"inputs": "kids", "id": 2**64},
        {"inputs": "kids " * 17, "truncate": True, "id": [7]},
    )
    assert [one["line"] for one in found] == [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    errors = [one.get("error", {}).get("code") for one in found]
    assert errors == [
        None,
        "invalid_json",
        "invalid_input",
        "unknown_field",
        "model_not_found",
        "invalid_type",
        "invalid_input",
        "invalid_json",
        "invalid_json",
        "invalid_input",
        None,
    ]
    assert found[2]["error"]["param"] == "inputs[1]"
    assert [one.get("id", "none") for one in found] == [
        *(1, "none", 2, "none", None, "none"),
        *("none", "none", "none", "none", [7]),
    ]
    assert found[-1]["headers"] == {"X-Truncated": "1"}


async def test_a_line_that_fails_unexpectedly_is_answered_alone(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Service, "bind", fail)
        broken, invalid = await answers(client, "/embed", {"inputs": "kids"}, "no json")
    assert broken["error"]["code"] == "internal_error"
    assert invalid["error"]["code"] == "invalid_json"
    assert "ZeroDivisionError" in caplog.text


async def test_a_stream_is_counted_by_its_lines(serve: Serve) -> None:
    async with serve() as client:
        await answers(client, "/embed", *[{"inputs": "kids", "model": "tiny-flat"}] * 3, "x")
        page = (await client.get("/metrics")).text
        assert 'heedful_tokens_total{model="tiny-flat"} 3.0' in page
        assert 'route="/embed",status="200"} 3.0' in page
        assert 'heedful_rejected_total{reason="invalid_json"} 1.0' in page


async def test_limits(serve: Serve) -> None:
    async with serve(max_body_bytes=200, max_queue=2, max_batch_inputs=2) as client:
        line = {"inputs": "kids", "model": "tiny-flat"}
        # More bytes than a body, and than a queue.
        found = await answers(client, "/embed", *[line] * 100)
        assert [one for one in found if "answer" not in one] == []
        assert len(found) == 100
        found = await answers(client, "/embed", line, {**line, "inputs": "k" * 200}, line)
        assert [one.get("error", {}).get("code") for one in found] == [None, "body_too_large"]
        headers = {**NDJSON, "Content-Encoding": "gzip"}
        refused = await client.post("/embed", content=b"", headers=headers)
        check(refused, 400, "wrong_content_encoding")
        refused = await client.post("/v2/models/tiny-flat/infer", content=b"{}\n{}", headers=NDJSON)
        check(refused, 400, "wrong_content_type")


@pytest.mark.parametrize("trickles", [False, True])
async def test_a_client_that_never_ends_a_line(serve: Serve, trickles: bool) -> None:
    async def stuck() -> AsyncIterator[bytes]:
        yield b'{"inputs": "kids", "model": "tiny-flat"}\n{"inputs": '
        while trickles:
            yield b" "
            await asyncio.sleep(0.01)
        await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE), serve(request_timeout=0.5) as client:
        answer = await client.post("/embed", content=stuck(), headers=NDJSON)
    first, last = map(json.loads, answer.text.splitlines())
    assert first["line"] == 0
    assert last["error"]["code"] == "timeout"


async def test_the_time_limit_is_that_of_a_line_and_not_of_the_stream() -> None:
    """Seven lines take longer than the limit; after them nothing comes."""
    limit, sent = 2.0, 0

    async def receive() -> dict[str, Any]:
        nonlocal sent
        sent += 1
        await asyncio.sleep(limit / 5 if sent <= 7 else PATIENCE)
        return {"type": "http.request", "body": b"kids\n", "more_body": True}

    found = _lines(receive, limit, 6)
    assert [await anext(found) for _ in range(7)] == [b"kids"] * 7
    with pytest.raises(TimedOut):
        await anext(found)


@contextlib.asynccontextmanager
async def posting(
    process: Process, path: str, header: str = ""
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A request whose body is still to be sent, in chunks."""
    host, _, port = process.url().removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n{header}\r\n"
    )
    writer.write(head.encode())
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


def chunk(*lines: dict[str, Any]) -> bytes:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return b"%x\r\n%s\r\n" % (len(body), body)


async def answer(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next answer's line; None at the end."""
    while (line := await reader.readline()) != b"0\r\n":
        assert line, "the stream ended early"
        if line.startswith(b"{"):
            found: dict[str, Any] = json.loads(line)
            return found
    return None


async def test_the_first_answer_comes_before_the_last_line_is_sent(process: Process) -> None:
    async with asyncio.timeout(PATIENCE), posting(process, "/embed") as (reader, writer):
        for number in range(3):  # each is sent when the one before is answered
            writer.write(chunk({"inputs": "kids", "id": number}))
            found = await answer(reader)
            assert found
            assert found["id"] == number
        writer.write(b"0\r\n\r\n")
        assert await answer(reader) is None


async def test_a_client_may_wait_for_100_continue_as_curl_does(process: Process) -> None:
    async with (
        asyncio.timeout(PATIENCE),
        posting(process, "/embed", "Expect: 100-continue\r\n") as (reader, writer),
    ):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(chunk({"inputs": "kids", "id": 7}) + b"0\r\n\r\n")
        found = await answer(reader)
        assert found
        assert found["id"] == 7
        assert await answer(reader) is None


LINES = int(os.environ.get("HEEDFUL_TEST_LINES", "5000"))  # 100,000 by hand
BAD = range(3, LINES, LINES // 100)


async def test_many_lines_with_some_bad_ones_take_no_memory(process: Process) -> None:
    memory = []

    async def send(writer: asyncio.StreamWriter) -> None:
        for number in range(LINES):
            text = "" if number in BAD else f"kid {number}"
            writer.write(chunk({"inputs": text, "model": "tiny-flat", "id": f"row {number}"}))
            await writer.drain()
            await asyncio.sleep(0)  # a full drain does not let the reader run
            if number in (LINES // 5, LINES - 1):
                memory.append(process.memory())
        writer.write(b"0\r\n\r\n")

    async with asyncio.timeout(10 * PATIENCE), posting(process, "/embed") as (reader, writer):
        sending = asyncio.create_task(send(writer))
        found = await answer(reader)
        good: list[str] = []
        bad: list[str] = []
        while found:
            (bad if "error" in found else good).append(found["id"])
            found = await answer(reader)
        await sending
    assert bad == [f"row {number}" for number in BAD]
    assert len(bad) == 100
    assert good == [f"row {number}" for number in range(LINES) if number not in BAD]
    assert memory[1] - memory[0] < 50e6
