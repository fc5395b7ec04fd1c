"""HTTP below the application, of a service of two processes: HEAD, what is no HTTP, and abuse by clients.

The limits are short, so that they end here soon. tests/faults has floods, and pipelined requests with kills.
"""

import http.client
import importlib
import inspect
import json
import re
import socket
import struct
import time
from functools import partial

import httpx
import pytest

from heedful.app.http.protocol import UVICORN
from tests.app.conftest import KEY, MAX_CONNECTIONS
from tests.app.posting import bearer
from tests.app.two_processes import (
    AS_JSON,
    EMBED,
    HEALTH,
    connect,
    connections,
    counted,
    healthy,
    page,
    ready,
    until_closed,
)
from tests.process import PATIENCE, Process, wait_for


def test_head_is_get_without_the_body(service: Process) -> None:
    """The numbers of the metrics move."""
    headers = bearer(KEY)
    with httpx.Client(base_url=service.url(), headers=headers, timeout=PATIENCE) as client:
        for path in ("/v2/models/tiny-nli", "/health", "/metrics", "/models", "/docs"):
            head, get = client.head(path), client.get(path)
            assert (head.status_code, head.content) == (get.status_code, b"") == (200, b"")
            for name in ("Content-Type", "Content-Length"):
                assert head.headers[name] == get.headers[name] or path == "/metrics"
            assert head.headers["X-Request-Id"]
        refused = client.head("/embed")
        assert (refused.status_code, refused.headers["Allow"]) == (405, "POST")


def raw(service: Process, sent: bytes, then: bytes = b"") -> tuple[bytes, bytes]:
    """The last answer's head and body; `then` is sent after the first answer."""
    with connect(service) as connection:
        connection.sendall(sent)
        if then:
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            connection.sendall(then)
        head, _, body = until_closed(connection).partition(b"\r\n\r\n")
    return head, body


BLANK = b'{"inputs":""}'  # read as a body, it is answered 422
CODED = b"Transfer-Encoding: "
CHUNKED = CODED + b"chunked\r\n"


def embed(body: bytes) -> bytes:
    return EMBED + AS_JSON + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


HEAD = embed(BLANK).partition(b"\r\n\r\n")[0] + b"\r\n"
CHUNKS = EMBED + AS_JSON + CHUNKED
LINE = b"X-A: " + b"a" * 25 + b"\r\n"
LARGE = b"A: " + b"b" * 600_000
NAMED = b"X-Request-Id: named\r\n"
REFUSED: list[tuple[int, str, bytes]] = [
    (400, "invalid_http", b"nonsense\r\n\r\n"),
    (400, "invalid_http", HEALTH + b"Content-Length: -1\r\n\r\n"),
    (400, "invalid_http", CHUNKS + NAMED + b"\r\nzz\r\n"),
    (400, "invalid_http", EMBED + CODED + b"gzip, chunked\r\n\r\n0\r\n\r\n"),
    (400, "invalid_http", EMBED + CODED + b"gzip\r\n" + CHUNKED + b"\r\n0\r\n\r\n"),
    (400, "invalid_http", HEALTH + b"bad header\r\n\r\n"),
    # No host:
    (400, "invalid_http", b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"),
    (400, "invalid_http", HEALTH + b"host: a\r\n\r\n"),
    (400, "invalid_http", b"get /health HTTP/1.1\r\nHost: a\r\n\r\n"),
    (414, "url_too_long", b"GET /" + b"a" * 20_000),
    (431, "headers_too_large", HEALTH + NAMED + LARGE),
    (431, "headers_too_large", HEALTH + LARGE + b"\r\nX-Request-Id: a"),
    (431, "headers_too_large", HEALTH + LINE * 1200),
    (431, "headers_too_large", HEALTH + b"A: b\r\n" * 200),
    (431, "headers_too_large", HEALTH + b"a" * 600_000),
    (431, "headers_too_large", CHUNKS + b"\r\n0\r\n" + LINE * 1200),
    (431, "headers_too_large", CHUNKS + b"\r\n1;" + b"b" * 600_000),
]


@pytest.mark.parametrize(("status", "code", "sent"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_before_the_application_gets_the_envelope_and_is_logged_and_counted(
    service: Process, status: int, code: str, sent: bytes
) -> None:
    """The answer has the request's id if it was read."""
    series = (
        rf'requests_total\{{model="none",route="other",status="{status}"\}}',
        rf'rejected_total\{{reason="{code}"\}}',
    )

    def refused() -> list[float]:
        text = page(service)
        return [counted(text, name) for name in series]

    before = refused()
    head, body = raw(service, sent)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"content-type: application/json" in head
    error = json.loads(body)["error"]
    assert error["code"] == code
    assert "method in capitals" in error["message"] or not sent.startswith(b"get")
    [named] = re.findall(r"x-request-id: (\S+)", head.decode())
    assert named == "named" if NAMED in sent else len(named) == 32
    line = f"route=other status={status} request_id={named} refusal={code}\n"
    wait_for(lambda: line in service.log or None, "its line")
    assert refused() == [count + 1 for count in before]


def test_http_1_0_needs_no_host_and_gets_no_interim_answer(service: Process) -> None:
    head, answer = raw(service, b"GET /health HTTP/1.0\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(answer) == {"status": "ok"}
    old = embed(b'{"inputs": "Two kids"}').replace(b"HTTP/1.1\r\nHost: x\r\n", b"HTTP/1.0\r\n")
    head, _ = raw(service, old.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
    assert head.startswith(b"HTTP/1.1 200 ")


def test_an_earlier_requests_id_is_not_given_to_what_follows(service: Process) -> None:
    first = HEALTH + b"X-Request-Id: earlier\r\n\r\n"
    head, _ = raw(service, first, b"nonsense\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"earlier" not in head


@pytest.mark.parametrize(
    ("head", "size", "status"),
    [
        (EMBED, 20_000_000, b"413"),
        # As urllib sends it, without the key.
        (b"POST /embed HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", 10_000_000, b"401"),
    ],
)
def test_who_sends_the_whole_body_first_gets_the_early_answer(
    service: Process, head: bytes, size: int, status: bytes
) -> None:
    length = b"Content-Length: %d\r\n\r\n" % size
    answer, body = raw(service, head + AS_JSON + length + b" " * size)
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


@pytest.mark.parametrize("at_once", [True, False])
def test_upgrade_is_ignored_and_the_body_is_read(service: Process, at_once: bool) -> None:
    h2c = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    with connect(service) as connection:
        connection.sendall(HEAD + h2c + (BLANK if at_once else b""))
        if not at_once:
            connection.sendall(BLANK[:4])
            connection.sendall(BLANK[4:])
        for _ in range(2):  # the connection lives on, and nothing of the body is left on it
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            error = json.loads(answer.read())["error"]
            assert (answer.status, error["message"]) == (422, "inputs is blank: send a text")
            connection.sendall(embed(BLANK))


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"GET /health HTTP/1.1\r\nHo", b"HTTP/1.1 408 "),
        (HEALTH + b"\r\n", b"HTTP/1.1 200 "),
    ],
)
def test_a_silent_client_is_closed(service: Process, sent: bytes, answer: bytes) -> None:
    with connect(service) as connection:
        connection.sendall(sent)
        assert until_closed(connection)[:13] == answer


def is_closed(connection: socket.socket) -> bool | None:
    """Whether one more byte is refused."""
    time.sleep(0.2)
    try:
        connection.sendall(b"x")
    except ConnectionError:
        return True
    return None


def test_a_body_that_trickles_in_after_its_answer_is_closed(service: Process) -> None:
    slow = EMBED.replace(b"/embed", b"/nowhere") + b"Content-Length: 100000\r\n\r\n"
    with connect(service) as connection:
        connection.sendall(slow)
        assert connection.recv(65536).startswith(b"HTTP/1.1 404 ")
        wait_for(partial(is_closed, connection), "the end of what is dropped, after 5 seconds")


def test_idle_connections_give_way(service: Process) -> None:
    with connections(service, 3 * MAX_CONNECTIONS):
        assert healthy(service)
    assert counted(page(service), r'limits_total\{limit="max_connections"\}') >= MAX_CONNECTIONS
    ready(service)


def test_an_answer_that_nobody_reads_is_given_up(service: Process) -> None:
    given_up = r'limits_total\{limit="write_timeout"\}'
    with connect(service, buffer=4096) as connection:
        document = EMBED.replace(b"POST /embed", b"GET /openapi.json") + b"\r\n"
        connection.sendall(document * 200)
        wait_for(lambda: counted(page(service), given_up) or None, "the write timeout")


def test_pipelined_requests_are_answered_in_order(service: Process) -> None:
    long = embed(b'{"inputs": ["%b"]}' % (b"kids " * 20_000))
    requests = [HEALTH + b"\r\n"] * 500 + [long] * 3 + [HEALTH + b"Connection: close\r\n\r\n"]
    named = [
        request.replace(b"\r\n", b"\r\nX-Request-Id: %d\r\n" % number, 1)
        for number, request in enumerate(requests)
    ]
    with connect(service) as connection:
        connection.sendall(b"".join(named))
        found = re.findall(rb"x-request-id: (\d+)", until_closed(connection))
    assert list(map(int, found)) == list(range(len(requests)))


LONG = embed(json.dumps({"inputs": ["two kids wash their hands"] * 400}).encode())
STREAM = EMBED + b"Content-Type: application/x-ndjson\r\n" + CHUNKED
LINES = STREAM + b'\r\n12\r\n{"inputs": "kids"}\r\n1\r\n\n\r\n'
PHASES: dict[str, tuple[bytes, int, set[int]]] = {
    "before its head": (b"", 0, set()),
    "in its head": (HEAD[:60], 0, set()),
    "before its body": (HEAD + b"\r\n", 0, {499}),
    "in its body": (LONG[:-9], 0, {499}),
    "while it is answered": (LONG, 0, {200, 499}),
    "in its answer": (LONG, 1, {200, 499}),
    "after its answer": (embed(BLANK), 100, {422}),
    "between pipelined answers": (embed(b'{"inputs": "two kids"}') * 4, 1, {200, 499}),
    "in the next head": (embed(BLANK) + HEAD[:20], 100, {422}),
    "in a stream": (STREAM + b'\r\n5\r\n{"inp\r\n', 0, {499}),
    "between lines of a stream": (LINES, 100, {200, 499}),
}
"""The bytes that a client has sent when it closes, those that it has read, and the statuses in the log."""


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
def test_a_client_that_goes_away_is_no_error(service: Process, phase: str, reset: bool) -> None:
    sent, read, statuses = PHASES[phase]
    name = re.sub(r"\W", "-", f"{phase} {reset}")
    before = len(service.log)
    for number in range(8):
        with connect(service) as connection:
            if reset:  # closing it sends one then
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            named = f"\r\nX-Request-Id: {name}-{number}\r\n".encode()
            connection.sendall(sent.replace(b"\r\n", named, 1))
            if read:
                connection.recv(read)
            time.sleep(number / 1000)  # at several moments of the service's work

    def logged() -> list[str] | None:
        lines = [line for line in service.log[before:].splitlines() if f"={name}-" in line]
        return lines if len(lines) == 8 * bool(statuses) else None

    lines = wait_for(logged, "a line for each client")
    assert healthy(service)
    logged_statuses = re.findall(r"status=(\d+)", "\n".join(lines))
    assert set(map(int, logged_statuses)) <= statuses, lines
    assert "Traceback" not in service.log[before:]
    assert " ERROR " not in service.log[before:]
