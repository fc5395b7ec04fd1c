"""Abuse by clients of a service of two processes, which serves all tests of this module.

The limits are short, so that they end here soon.
"""

import http.client
import json
import re
import socket
import struct
import threading
import time

import pytest

from tests.app.conftest import MAX_CONNECTIONS
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
    slow_reader,
    until_closed,
)
from tests.process import Process, wait_for

BLANK = b'{"inputs":""}'  # read as a body, it is answered 422
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def embed(body: bytes) -> bytes:
    return EMBED + AS_JSON + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


HEAD = embed(BLANK).partition(b"\r\n\r\n")[0] + b"\r\n"
CHUNKS = EMBED + AS_JSON + CHUNKED + b"\r\n"
LINE = b"X-A: " + b"a" * 25 + b"\r\n"


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
    "sent",
    [
        pytest.param(HEALTH + LINE * 1200, id="lines"),
        pytest.param(HEALTH + b"A: b\r\n" * 200, id="count"),
        pytest.param(HEALTH + b"a" * 600_000, id="name"),
        pytest.param(CHUNKS + b"0\r\n" + LINE * 1200, id="trailers"),
        pytest.param(CHUNKS + b"0\r\nA: " + b"b" * 600_000, id="trailer"),
        pytest.param(CHUNKS + b"1;" + b"b" * 600_000, id="extension"),
    ],
)
def test_a_head_has_limits(service: Process, sent: bytes) -> None:
    with connect(service) as connection:
        connection.sendall(sent)
        head, _, body = until_closed(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert json.loads(body)["error"]["code"] == "headers_too_large"


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


def test_a_body_that_trickles_in_after_its_answer_is_closed(service: Process) -> None:
    slow = EMBED.replace(b"/embed", b"/nowhere") + b"Content-Length: 100000\r\n\r\n"
    with connect(service) as connection:
        connection.sendall(slow)
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
    with connections(service, 3 * MAX_CONNECTIONS):
        assert healthy(service)
    assert counted(page(service), r'limits_total\{limit="max_connections"\}') >= MAX_CONNECTIONS
    ready(service)


def test_an_answer_that_nobody_reads_is_given_up(service: Process) -> None:
    given_up = r'limits_total\{limit="write_timeout"\}'
    with slow_reader(service) as connection:
        document = EMBED.replace(b"POST /embed", b"GET /openapi.json") + b"\r\n"
        connection.sendall(document * 200)
        wait_for(lambda: counted(page(service), given_up) or None, "the write timeout")


def test_pipelined_requests_wait_unparsed(service: Process) -> None:
    """All of them are answered, in order, and cost no memory while nobody reads the answers."""
    ready(service)
    before = service.memory()
    requests = b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n" * 8000  # 250 kB
    with connections(service, 40) as flooding:
        for connection in flooding:
            connection.setblocking(False)
            connection.send(requests)
        assert healthy(service)
        assert service.memory() - before < 50e6
    numbers = [f"{number}" for number in range(1000)]
    gets = [f"GET /{number} HTTP/1.1\r\nHost: x\r\n\r\n".encode() for number in numbers]
    assert pipelined(service, gets) == numbers
    posts = [embed(b'{"inputs": ["%b"]}' % (b"kids " * 20_000))] * 5
    assert pipelined(service, posts) == numbers[:5]


def pipelined(service: Process, requests: list[bytes]) -> list[str]:
    """Send all of them at once, each with its number for an id; the ids of the answers."""
    sent = b"".join(
        request.replace(b"\r\n", b"\r\nX-Request-Id: %d\r\n" % number, 1)
        for number, request in enumerate(requests)
    )
    with connect(service) as connection:
        threading.Thread(target=connection.sendall, args=(sent,)).start()
        read = connection.makefile("rb")
        ids = []
        for _ in requests:
            headers = {}
            while (line := read.readline().decode()) not in ("\r\n", ""):
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            length = int(headers["content-length"])
            assert len(read.read(length)) == length > 0
            ids.append(headers["x-request-id"])
    return ids


def reset_at_its_end(connection: socket.socket) -> None:
    """Closing the connection sends a reset then."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_reset_between_pipelined_answers_is_no_fault_of_the_service(service: Process) -> None:
    """At every moment of their work: the old service logged 14 tracebacks for 150 such clients."""
    before = counted(page(service), CLOSED)
    for _ in range(10):  # the second request waits for the end of its body
        with connect(service) as connection:
            reset_at_its_end(connection)
            connection.sendall((embed(BLANK) * 2)[:-1])
            connection.recv(1)
    wait_for(lambda: counted(page(service), CLOSED) == before + 10 or None, "a status 499 of each")
    for number in range(150):
        with connect(service) as connection:
            reset_at_its_end(connection)
            connection.sendall(embed(b'{"inputs": "two kids wash"}') * 4)
            time.sleep(number % 24 / 2000)
    assert healthy(service)
    assert "Traceback" not in service.log


CLOSED = r'requests_total\{[^}]*status="499"\}'
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
            if reset:
                reset_at_its_end(connection)
            named = f"\r\nX-Request-Id: {name}-{number}\r\n".encode()
            connection.sendall(sent.replace(b"\r\n", named, 1))
            if read:
                connection.recv(read)

    def logged() -> list[str] | None:
        lines = [line for line in service.log[before:].splitlines() if f"={name}-" in line]
        return lines if len(lines) == 8 * bool(statuses) else None

    lines = wait_for(logged, "a line for each client")
    assert healthy(service)
    logged_statuses = re.findall(r"status=(\d+)", "\n".join(lines))
    assert set(map(int, logged_statuses)) <= statuses, lines
    assert "Traceback" not in service.log[before:]
    assert " ERROR " not in service.log[before:]
