"""What clients may do to a service of two processes, one after the other to the same service.

The limits are short, so that they end here soon.
"""

import http.client
import json
import re
import socket
import struct
import threading
import time
from contextlib import ExitStack

import pytest

from tests.app.conftest import KEY, MAX_CONNECTIONS
from tests.app.two_processes import HEALTH, connect, counted, healthy, page, ready, until_closed
from tests.process import PATIENCE, Process, wait_for

BLANK = b'{"inputs":""}'  # read as a body, it is answered 422
HEAD = b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + (
    f"Authorization: Bearer {KEY}\r\nContent-Length: {len(BLANK)}\r\n".encode()
)


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
            body = json.loads(answer.read())
            assert (answer.status, body["error"]["message"]) == (
                422,
                "inputs is blank: send a text",
            )
            connection.sendall(HEAD + b"\r\n" + BLANK)


LINE = b"X-A: " + b"a" * 25 + b"\r\n"
CHUNKED = HEAD.replace(b"Content-Length: 13", b"Transfer-Encoding: chunked") + b"\r\n"


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        pytest.param(HEALTH + LINE * 1200, 431, "headers_too_large", id="lines"),
        pytest.param(HEALTH + b"A: b\r\n" * 200, 431, "headers_too_large", id="count"),
        pytest.param(HEALTH + b"a" * 600_000, 431, "headers_too_large", id="name"),
        pytest.param(CHUNKED + b"0\r\n" + LINE * 1200, 431, "headers_too_large", id="trailers"),
        pytest.param(
            CHUNKED + b"0\r\nA: " + b"b" * 600_000, 431, "headers_too_large", id="trailer"
        ),
        pytest.param(CHUNKED + b"1;" + b"b" * 600_000, 431, "headers_too_large", id="extension"),
    ],
)
def test_a_head_has_limits(service: Process, sent: bytes, status: int, code: str) -> None:
    with connect(service) as connection:
        connection.sendall(sent)
        head, _, body = until_closed(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(body)["error"]["code"] == code


def test_endless_headers_cost_no_memory(service: Process) -> None:
    assert healthy(service)
    before = service.memory()
    with connect(service) as connection:
        try:
            for _ in range(40):
                connection.sendall(LINE * 24_000)  # 30 MB together
        except OSError:
            pass  # it has been refused, and closed after that
        assert service.memory() - before < 20e6
    assert healthy(service)


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHo", HEALTH + b"\r\n"])
def test_a_silent_client_is_closed(service: Process, sent: bytes) -> None:
    with connect(service) as connection:
        connection.sendall(sent)
        read = until_closed(connection)
    status = {b"": b"", HEALTH + b"\r\n": b"HTTP/1.1 200 "}.get(sent, b"HTTP/1.1 408 ")
    assert read.startswith(status)
    assert bool(read) == bool(sent)


def test_a_body_that_trickles_in_after_its_answer_is_closed(service: Process) -> None:
    slow = b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
    with connect(service) as connection:
        connection.sendall(slow + f"Authorization: Bearer {KEY}\r\n\r\n".encode())
        connection.settimeout(0.2)
        read, sent = b"", 0
        while True:
            try:
                if not (chunk := connection.recv(65536)):
                    break
                read += chunk
            except TimeoutError:
                sent += connection.send(b"x")
            except ConnectionResetError:
                break
    assert read.startswith(b"HTTP/1.1 404 ")
    assert sent < 1000


def test_idle_connections_give_way(service: Process) -> None:
    with ExitStack() as stack:
        for _ in range(3 * MAX_CONNECTIONS):
            stack.enter_context(connect(service))
        assert healthy(service)
    assert counted(page(service), r'limits_total\{limit="max_connections"\}') >= MAX_CONNECTIONS
    ready(service)


def test_an_answer_that_nobody_reads_is_given_up(service: Process) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE)
        host, _, port = service.url().removeprefix("http://").rpartition(":")
        connection.connect((host, int(port)))
        ask = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n" + (
            f"Authorization: Bearer {KEY}\r\n\r\n".encode()
        )
        connection.sendall(ask * 200)
        wait_for(
            lambda: counted(page(service), r'limits_total\{limit="write_timeout"\}') or None,
            "the write timeout",
        )


def test_pipelined_requests_wait_unparsed(service: Process) -> None:
    """All of them are answered, in order, and cost no memory while nobody reads the answers."""
    ready(service)
    before = service.memory()
    asked = b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n" * 8000  # 250 kB
    with ExitStack() as stack:
        flooding = [stack.enter_context(connect(service)) for _ in range(40)]
        for connection in flooding:
            connection.setblocking(False)
            connection.send(asked)
        assert healthy(service)
        assert service.memory() - before < 50e6
    answers = pipelined(service, [f"GET /{i} HTTP/1.1\r\nHost: x\r\n" for i in range(1000)])
    assert answers == [f"{i}" for i in range(1000)]


def test_pipelined_bodies_are_read(service: Process) -> None:
    body = b'{"inputs": ["%b"]}' % (b"kids " * 20_000)
    head = HEAD.replace(b"Content-Length: 13", b"Content-Length: %d" % len(body)).decode()
    answers = pipelined(service, [head + "\r\n" + body.decode()] * 5, end="")
    assert len(answers) == 5


def pipelined(service: Process, requests: list[str], end: str = "\r\n") -> list[str]:
    """Send all of them at once, each with its number for an id; the ids of the answers."""
    sent = [
        one.replace("\r\n", f"\r\nX-Request-Id: {i}\r\n", 1) + end for i, one in enumerate(requests)
    ]
    with connect(service) as connection:
        threading.Thread(target=connection.sendall, args=("".join(sent).encode(),)).start()
        read = connection.makefile("rb")
        ids = []
        for _ in requests:
            ids.append("")
            length = 0
            while (line := read.readline().decode()) not in ("\r\n", ""):
                name, _, value = line.partition(":")
                if name.lower() == "x-request-id":
                    ids[-1] = value.strip()
                elif name.lower() == "content-length":
                    length = int(value)
            assert len(read.read(length)) == length > 0
    return ids


def test_a_reset_between_pipelined_answers_is_no_fault_of_the_service(service: Process) -> None:
    """At every moment of their work: the old service logged 14 tracebacks for 150 such clients."""
    body = b'{"inputs": "two kids wash"}'
    request = HEAD.replace(b"Length: %d" % len(BLANK), b"Length: %d" % len(body)) + b"\r\n" + body
    for number in range(150):
        with connect(service) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(request * 4)
            time.sleep(number % 24 / 2000)
    assert healthy(service)
    assert "Traceback" not in service.log


def test_a_pipelined_request_whose_client_has_gone_is_499(service: Process) -> None:
    before = counted(page(service), CLOSED)
    for _ in range(10):  # the second waits for the end of its body
        reset_after_the_first_answer(service, ((HEAD + b"\r\n" + BLANK) * 2)[:-1])
    wait_for(
        lambda: counted(page(service), CLOSED) == before + 10 or None, "clients that have gone"
    )
    assert "Traceback" not in service.log


def reset_after_the_first_answer(service: Process, requests: bytes) -> None:
    with connect(service) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(requests)
        connection.recv(1)  # closing the connection then sends a reset


MANY = json.dumps({"inputs": ["two kids wash their hands"] * 400}).encode()
LONG = HEAD.replace(b"Length: %d" % len(BLANK), b"Length: %d" % len(MANY)) + b"\r\n" + MANY
STREAM = HEAD.replace(b"Content-Length: %d" % len(BLANK), b"Transfer-Encoding: chunked").replace(
    b"/json", b"/x-ndjson"
)
CLOSED = r'requests_total\{[^}]*status="499"\}'
PHASES: dict[str, tuple[bytes, int, set[int]]] = {
    "before its head": (b"", 0, set()),
    "in its head": (HEAD[:60], 0, set()),
    "before its body": (HEAD + b"\r\n", 0, {499}),
    "in its body": (LONG[:-9], 0, {499}),
    "while it is answered": (LONG, 0, {200, 499}),
    "in its answer": (LONG, 1, {200, 499}),
    "after its answer": (HEAD + b"\r\n" + BLANK, 100, {422}),
    "in the next head": (HEAD + b"\r\n" + BLANK + HEAD[:20], 100, {422}),
    "in a stream": (STREAM + b'\r\n5\r\n{"inp\r\n', 0, {499}),
    "between lines of a stream": (
        STREAM + b'\r\n12\r\n{"inputs": "kids"}\r\n1\r\n\n\r\n',
        100,
        {200, 499},
    ),
}
"""What a client has sent when it goes away, the bytes it has read, and the statuses that are logged for it."""


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
def test_a_client_that_goes_away_is_no_error(service: Process, phase: str, reset: bool) -> None:
    sent, read, statuses = PHASES[phase]
    name = re.sub(r"\W", "-", f"{phase} {reset}")
    before = len(service.log)
    for number in range(8):
        with connect(service) as connection:
            if reset:
                option = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
            own = f"\r\nX-Request-Id: {name}-{number}\r\n".encode()
            connection.sendall(sent.replace(b"\r\n", own, 1))
            if read:
                connection.recv(read)

    def logged() -> list[str] | None:
        lines = [line for line in service.log[before:].splitlines() if f"={name}-" in line]
        return lines if len(lines) == 8 * bool(statuses) else None

    lines = wait_for(logged, "a line for each client")
    assert healthy(service)
    found = {int(found[1]) for line in lines if (found := re.search(r"status=(\d+)", line))}
    assert found <= statuses, lines
    assert "Traceback" not in service.log[before:]
    assert " ERROR " not in service.log[before:]
