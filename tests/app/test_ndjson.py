"""application/x-ndjson: a request a line, answered in order while the client still sends."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from heedful.runtime.service import Service
from tests.app.conftest import Serve
from tests.app.posting import NDJSON, Client, check, metrics
from tests.app.two_processes import EMBED
from tests.process import PATIENCE, Process

pytestmark = pytest.mark.anyio


async def answers(client: Client, path: str, *lines: object) -> list[dict[str, Any]]:
    """They are JSON, whatever the client accepts."""
    body = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    headers = {**NDJSON, "Accept": "application/octet-stream"}
    answer = await client.post(path, content=body.encode(), headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


DEEP = '{"inputs": "kids", "x": ' + '{"a":' * 500 + "1" + "}" * 501
LINES: list[tuple[object, int, str | None, Any]] = [
    ('\ufeff{"inputs": "kids", "id": 1}\r', 0, None, 1),  # a byte order mark is no part of it
    ("no json", 1, "invalid_json", "none"),
    ("", 2, None, "no answer"),
    ({"inputs": ["kids", ""], "id": 2}, 3, "invalid_input", 2),
    ({"inputs": "kids", "colour": "red"}, 4, "unknown_field", "none"),
    ({"inputs": "kids", "model": "bert", "id": None}, 5, "model_not_found", None),
    ("[]", 6, "invalid_type", "none"),
    ('{"inputs": "kids", "id": "\\ud800"}', 7, "invalid_input", "none"),
    (DEEP, 8, "invalid_json", "none"),
    ({"inputs": "kids", "id": 2**64}, 9, "invalid_input", "none"),
    ({"inputs": "kids " * 17, "truncate": True, "id": [7]}, 10, None, [7]),
]
"""A line, its number, the error's code, and the id that is answered."""


async def test_errors_are_the_lines(
    client: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = await answers(client, "/classify", *(line for line, *_ in LINES))
    assert [
        (result["line"], result.get("error", {}).get("code"), result.get("id", "none"))
        for result in results
    ] == [tuple(expected) for _, *expected in LINES if expected[2] != "no answer"]
    assert results[2]["error"]["param"] == "inputs[1]"
    assert results[-1]["headers"] == {"X-Truncated": "1"}
    monkeypatch.setattr(Service, "bind", lambda *_, **__: 1 / 0)
    results = await answers(client, "/embed", {"inputs": "kids"}, "no json")
    codes = [result["error"]["code"] for result in results]
    assert codes == ["internal_error", "invalid_json"]
    assert "ZeroDivisionError" in caplog.text


async def test_a_stream_is_counted_and_limited_by_its_lines(serve: Serve) -> None:
    line = {"inputs": "kids", "model": "tiny-flat"}
    async with serve(max_body_bytes=200, max_queue=2, max_batch_inputs=2) as client:
        # More bytes than a body, and than a queue.
        results = await answers(client, "/embed", *[line] * 100, "x")
        assert ["answer" in result for result in results] == [True] * 100 + [False]
        page = await metrics(client)
        assert 'heedful_tokens_total{model="tiny-flat"} 100.0' in page
        assert 'route="/embed",status="200"} 100.0' in page
        assert 'heedful_rejected_total{reason="invalid_json"} 1.0' in page
        results = await answers(client, "/embed", line, {**line, "inputs": "k" * 200}, line)
        codes = [result.get("error", {}).get("code") for result in results]
        assert codes == [None, "body_too_large"]
        headers = {**NDJSON, "Content-Encoding": "gzip"}
        refused = await client.post("/embed", content=b"", headers=headers)
        check(refused, 400, "wrong_content_encoding")
        refused = await client.post("/v2/models/tiny-flat/infer", content=b"{}\n{}", headers=NDJSON)
        check(refused, 400, "wrong_content_type")


@pytest.mark.parametrize("trickles", [False, True])
async def test_the_time_limit_is_that_of_a_line_and_not_of_the_stream(
    serve: Serve, trickles: bool
) -> None:
    """Six lines take longer than the limit; the seventh never ends."""

    async def stuck() -> AsyncIterator[bytes]:
        for _ in range(6):
            yield b'{"inputs": "kids", "model": "tiny-flat"}\n'
            await asyncio.sleep(0.3)
        yield b'{"inputs": '
        while trickles:
            yield b" "
            await asyncio.sleep(0.01)
        await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE), serve(request_timeout=1.5) as client:
        answer = await client.post("/embed", content=stuck(), headers=NDJSON)
    *answered, last = map(json.loads, answer.text.splitlines())
    assert ["answer" in line for line in answered] == [True] * 6
    assert last["error"]["code"] == "timeout"


@contextlib.asynccontextmanager
async def posting(
    process: Process, header: str = ""
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A request to /embed whose body is still to be sent, in chunks."""
    host, _, port = process.url().removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    types = "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n"
    writer.write(EMBED + f"{types}{header}\r\n".encode())
    try:
        async with asyncio.timeout(10 * PATIENCE):
            yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


def chunk(**line: Any) -> bytes:
    body = json.dumps(line).encode() + b"\n"
    return b"%x\r\n%s\r\n" % (len(body), body)


END = b"0\r\n\r\n"


async def answered_id(reader: asyncio.StreamReader) -> tuple[Any, bool] | None:
    """The id of the next answer's line, and whether it is an error; None at the end."""
    while (line := await reader.readline()) != b"0\r\n":
        assert line, "the stream ended early"
        if line.startswith(b"{"):
            answer = json.loads(line)
            return answer["id"], "error" in answer
    return None


async def test_the_first_answer_comes_before_the_last_line_is_sent(process: Process) -> None:
    """A client may wait for 100 Continue, as curl does."""
    for header in ("", "Expect: 100-continue\r\n"):
        async with posting(process, header) as (reader, writer):
            if header:
                assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            for number in range(3):  # each is sent when the one before is answered
                writer.write(chunk(inputs="kids", id=number))
                assert await answered_id(reader) == (number, False)
            writer.write(END)
            assert await answered_id(reader) is None


COUNT = int(os.environ.get("HEEDFUL_TEST_LINES", "5000"))  # 100,000 by hand
BAD = range(3, COUNT, COUNT // 100)


async def test_many_lines_with_some_bad_ones_take_no_memory(process: Process) -> None:
    memory = []

    async def send(writer: asyncio.StreamWriter) -> None:
        for number in range(COUNT):
            text = "" if number in BAD else f"kid {number}"
            writer.write(chunk(inputs=text, model="tiny-flat", id=number))
            await writer.drain()
            await asyncio.sleep(0)  # a full drain does not let the reader run
            if number in (COUNT // 5, COUNT - 1):
                memory.append(process.memory())
        writer.write(END)

    async with posting(process) as (reader, writer):
        sending = asyncio.create_task(send(writer))
        ids = []
        while (answered := await answered_id(reader)) is not None:
            ids.append(answered)
        await sending
    assert len(BAD) == 100
    assert ids == [(number, number in BAD) for number in range(COUNT)]
    assert memory[1] - memory[0] < 50e6
