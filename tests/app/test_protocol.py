"""What a process does below the application: HEAD, and what is no HTTP."""

import importlib
import inspect
import json
import re
import socket

import httpx
import pytest

from heedful.app.http.protocol import UVICORN
from tests.app.conftest import KEY
from tests.process import PATIENCE, Process, wait_for

GET = (
    "/v2",
    "/v2/health/live",
    "/v2/models/tiny-nli",
    "/health",
    "/ready",
    "/metrics",
    "/models",
    "/v1/models",
    "/info",
    "/docs",
    "/openapi.json",
)


@pytest.mark.parametrize("path", GET)
def test_head_is_get_without_the_body(process: Process, path: str) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    head, get = (
        httpx.request(method, process.url() + path, headers=headers, timeout=PATIENCE)
        for method in ("HEAD", "GET")
    )
    assert head.status_code == get.status_code == 200
    assert head.content == b""
    assert head.headers["Content-Type"] == get.headers["Content-Type"]
    assert head.headers["X-Request-Id"]
    if path != "/metrics":  # its numbers move
        assert head.headers["Content-Length"] == get.headers["Content-Length"]


def test_head_of_a_route_that_only_takes_post(process: Process) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    answer = httpx.head(process.url() + "/embed", headers=headers, timeout=PATIENCE)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /embed HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nbad header\r\n\r\n",
        bytes(range(128, 160)) + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
        b"GET /health HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    ],
)
def test_what_is_no_http_gets_the_envelope(process: Process, sent: bytes) -> None:
    head, body = raw(process, sent)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    assert json.loads(body)["error"]["code"] == "invalid_http"


def test_a_method_in_small_letters_is_told_the_rule(process: Process) -> None:
    _, body = raw(process, b"get /health HTTP/1.1\r\nHost: a\r\n\r\n")
    assert "method in capitals" in json.loads(body)["error"]["message"]


def test_http_1_0_needs_no_host(process: Process) -> None:
    head, body = raw(process, b"GET /health HTTP/1.0\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(body) == {"status": "ok"}


def test_http_1_0_gets_no_interim_answer(process: Process) -> None:
    body = b'{"inputs": "Two kids"}'
    head, _ = raw(
        process,
        b"POST /embed HTTP/1.0\r\nAuthorization: Bearer %b\r\nContent-Type: application/json\r\n"
        b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n%b" % (KEY.encode(), len(body), body),
    )
    assert head.startswith(b"HTTP/1.1 200 ")


GET_HEALTH = b"GET /health HTTP/1.1\r\nHost: a\r\n"


CHUNKED = b"POST /embed HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
LARGE = b"A: " + b"b" * 40_000 + b"\r\n"
EARLY: dict[bytes, tuple[int, str, str | None]] = {
    GET_HEALTH + b"X-Request-Id: head\r\n" + LARGE: (431, "headers_too_large", "head"),
    GET_HEALTH + LARGE + b"X-Request-Id: a": (431, "headers_too_large", None),
    b"GET /" + b"a" * 20_000: (414, "url_too_long", None),
    b"nonsense\r\n\r\n": (400, "invalid_http", None),
    CHUNKED + b"X-Request-Id: body\r\n\r\nzz\r\n": (400, "invalid_http", "body"),
}
"""What is sent -> status, code, and the request's id as far as it was read."""


@pytest.mark.parametrize("sent", EARLY, ids=range(len(EARLY)))
def test_what_is_refused_before_the_application_is_logged_and_counted(
    process: Process, sent: bytes
) -> None:
    status, code, own = EARLY[sent]
    before = refused(process, status, code)
    head, _ = raw(process, sent)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    [named] = re.findall(rb"x-request-id: (\S+)", head)
    assert named.decode() == own if own else len(named) == 32
    line = f"route=other status={status} request_id={named.decode()} refusal={code}\n"
    wait_for(lambda: line in process.log or None, "its line")
    assert refused(process, status, code) == [count + 1 for count in before]


def test_an_earlier_requests_id_is_not_given_to_what_follows(process: Process) -> None:
    head, _ = raw(process, GET_HEALTH + b"X-Request-Id: earlier\r\n\r\n", b"nonsense\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"earlier" not in head


def raw(process: Process, sent: bytes, then: bytes = b"") -> tuple[bytes, bytes]:
    """The last answer's head and body; `then` is sent after the first answer."""
    host, _, port = process.url().removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        if then:
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            connection.sendall(then)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (b"Authorization: Bearer %b\r\nContent-Length: 20000000\r\n" % KEY.encode(), b"413"),
        (b"Connection: close\r\nContent-Length: 10000000\r\n", b"401"),  # as urllib sends it
    ],
)
def test_who_sends_the_whole_body_first_gets_the_early_answer(
    process: Process, more: bytes, status: bytes
) -> None:
    [size] = re.findall(rb"Length: (\d+)", more)
    head = b"POST /embed HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" + more + b"\r\n"
    answer, body = raw(process, head + b" " * int(size))
    assert answer.startswith(b"HTTP/1.1 %b " % status)
    assert b"connection: close" in answer
    assert json.loads(body)["error"]


def refused(process: Process, status: int, code: str) -> list[float]:
    """How many requests the metrics have with this status and no model, and with this code."""
    page = httpx.get(process.url() + "/metrics", timeout=PATIENCE).text
    return [
        sum(map(float, re.findall(rf"^heedful_{sample} (\S+)$", page, re.M)))
        for sample in (
            rf'requests_total{{model="none",route="other",status="{status}"}}',
            rf'rejected_total{{reason="{code}"}}',
        )
    ]


def test_every_name_of_uvicorn_that_is_used_is_there() -> None:
    for name, attributes in UVICORN.items():
        module, _, kind = name.rpartition(".")
        found = getattr(importlib.import_module(module), kind)
        source = inspect.getsource(found)  # of which some names are set in __init__
        missing = [
            one
            for one in attributes.split()
            if not hasattr(found, one) and not re.search(rf"\bself\.{one}\b", source)
        ]
        assert missing == [], name


def test_an_answer_leaves_in_one_piece(process: Process) -> None:
    """Head and body in one system call."""
    host, _, port = process.url().removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        for _ in range(50):
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            head, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            [length] = re.findall(rb"content-length: (\d+)", head, re.I)
            assert len(body) == int(length) > 0
        connection.sendall(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")  # a head alone leaves too
        assert connection.recv(65536).endswith(b"\r\n\r\n")
