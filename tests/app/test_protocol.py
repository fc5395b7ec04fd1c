"""HTTP below the application: HEAD, and requests that are no HTTP."""

import importlib
import inspect
import json
import re

import httpx
import pytest

from heedful.app.http.protocol import UVICORN
from tests.app.conftest import KEY
from tests.app.posting import bearer
from tests.app.two_processes import connect, page, until_closed
from tests.process import PATIENCE, Process, wait_for

GET = (
    *("/v2", "/v2/health/live", "/v2/models/tiny-nli", "/health", "/ready", "/metrics", "/models"),
    *("/v1/models", "/info", "/docs", "/openapi.json"),
)


def ask(process: Process, method: str, path: str) -> httpx.Response:
    url = process.url() + path
    return httpx.request(method, url, headers=bearer(KEY), timeout=PATIENCE)


@pytest.mark.parametrize("path", GET)
def test_head_is_get_without_the_body(process: Process, path: str) -> None:
    head, get = (ask(process, method, path) for method in ("HEAD", "GET"))
    assert head.status_code == get.status_code == 200
    assert head.content == b""
    assert head.headers["Content-Type"] == get.headers["Content-Type"]
    assert head.headers["X-Request-Id"]
    if path != "/metrics":  # its numbers move
        assert head.headers["Content-Length"] == get.headers["Content-Length"]
    refused = ask(process, "HEAD", "/embed")
    assert (refused.status_code, refused.headers["Allow"]) == (405, "POST")


def raw(process: Process, sent: bytes, then: bytes = b"") -> tuple[bytes, bytes]:
    """The last answer's head and body; `then` is sent after the first answer."""
    with connect(process) as connection:
        connection.sendall(sent)
        if then:
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            connection.sendall(then)
        head, _, body = until_closed(connection).partition(b"\r\n\r\n")
    return head, body


HEALTH, EMBED = b"GET /health HTTP/1.1\r\n", b"POST /embed HTTP/1.1\r\nHost: a\r\n"
CODED = b"Transfer-Encoding: "


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        HEALTH + b"Host: a\r\nContent-Length: -1\r\n\r\n",
        EMBED + CODED + b"chunked\r\n\r\nzz\r\n",
        EMBED + CODED + b"gzip, chunked\r\n\r\n0\r\n\r\n",
        EMBED + CODED + b"gzip\r\n" + CODED + b"chunked\r\n\r\n0\r\n\r\n",
        HEALTH + b"bad header\r\n\r\n",
        bytes(range(128, 160)) + b"\r\n\r\n",
        HEALTH + b"\r\n",
        HEALTH + b"Host: a\r\nhost: a\r\n\r\n",
        HEALTH + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"get /health HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_what_is_no_http_gets_the_envelope(process: Process, sent: bytes) -> None:
    head, body = raw(process, sent)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    error = json.loads(body)["error"]
    assert error["code"] == "invalid_http"
    assert "method in capitals" in error["message"] or not sent.startswith(b"get")


def test_http_1_0_needs_no_host_and_gets_no_interim_answer(process: Process) -> None:
    head, answer = raw(process, b"GET /health HTTP/1.0\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(answer) == {"status": "ok"}
    head, _ = raw(
        process,
        b"POST /embed HTTP/1.0\r\nAuthorization: Bearer %b\r\nContent-Type: application/json\r\n"
        b'Expect: 100-continue\r\nContent-Length: 22\r\n\r\n{"inputs": "Two kids"}' % KEY.encode(),
    )
    assert head.startswith(b"HTTP/1.1 200 ")


LARGE = b"A: " + b"b" * 40_000 + b"\r\n"
EARLY: list[tuple[bytes, int, str, str | None]] = [
    (HEALTH + b"Host: a\r\nX-Request-Id: head\r\n" + LARGE, 431, "headers_too_large", "head"),
    (HEALTH + b"Host: a\r\n" + LARGE + b"X-Request-Id: a", 431, "headers_too_large", None),
    (b"GET /" + b"a" * 20_000, 414, "url_too_long", None),
    (b"nonsense\r\n\r\n", 400, "invalid_http", None),
    (EMBED + CODED + b"chunked\r\nX-Request-Id: body\r\n\r\nzz\r\n", 400, "invalid_http", "body"),
]
"""Bytes that are sent, status, code, and the request's id if it was read."""


@pytest.mark.parametrize(("sent", "status", "code", "id"), EARLY, ids=range(len(EARLY)))
def test_what_is_refused_before_the_application_is_logged_and_counted(
    process: Process, sent: bytes, status: int, code: str, id: str | None
) -> None:
    def refused() -> list[float]:
        """How many requests the metrics have with this status and no model, and with this code."""
        series = (
            rf'requests_total{{model="none",route="other",status="{status}"}}',
            rf'rejected_total{{reason="{code}"}}',
        )
        text = page(process)
        values = [re.findall(rf"^heedful_{name} (\S+)$", text, re.M) for name in series]
        return [sum(map(float, value)) for value in values]

    before = refused()
    head, _ = raw(process, sent)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    [named] = re.findall(r"x-request-id: (\S+)", head.decode())
    assert named == id if id else len(named) == 32
    line = f"route=other status={status} request_id={named} refusal={code}\n"
    wait_for(lambda: line in process.log or None, "its line")
    assert refused() == [count + 1 for count in before]


def test_an_earlier_requests_id_is_not_given_to_what_follows(process: Process) -> None:
    first = HEALTH + b"Host: a\r\nX-Request-Id: earlier\r\n\r\n"
    head, _ = raw(process, first, b"nonsense\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"earlier" not in head


@pytest.mark.parametrize(
    ("more", "size", "status"),
    [
        (b"Authorization: Bearer %b" % KEY.encode(), 20_000_000, b"413"),
        (b"Connection: close", 10_000_000, b"401"),  # as urllib sends it
    ],
)
def test_who_sends_the_whole_body_first_gets_the_early_answer(
    process: Process, more: bytes, size: int, status: bytes
) -> None:
    head = b"Content-Type: application/json\r\n%b\r\nContent-Length: %d\r\n\r\n" % (more, size)
    answer, body = raw(process, EMBED + head + b" " * size)
    assert answer.startswith(b"HTTP/1.1 %b " % status)
    assert b"connection: close" in answer
    assert json.loads(body)["error"]


def test_every_name_of_uvicorn_that_is_used_is_there() -> None:
    for name, attributes in UVICORN.items():
        module, _, kind = name.rpartition(".")
        source = getattr(importlib.import_module(module), kind)
        text = inspect.getsource(source)  # of which some names are set in __init__
        for attribute in attributes.split():
            there = hasattr(source, attribute) or re.search(rf"\bself\.{attribute}\b", text)
            assert there, (name, attribute)


def test_an_answer_leaves_in_one_piece(process: Process) -> None:
    """Head and body in one system call."""
    with connect(process) as connection:
        for _ in range(50):
            connection.sendall(HEALTH + b"Host: a\r\n\r\n")
            head, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            [length] = re.findall(rb"content-length: (\d+)", head, re.I)
            assert len(body) == int(length) > 0
        connection.sendall(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")  # a head alone leaves too
        assert connection.recv(65536).endswith(b"\r\n\r\n")
