"""HTTP below the application, of a service of two processes: HEAD, what is no HTTP, and abuse by clients.

The limits are short, so that they end here soon.
"""

import http.client
import importlib
import inspect
import json
import re
import socket
import struct
import threading
import time

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

GET = (
    *("/v2", "/v2/health/live", "/v2/models/tiny-nli", "/health", "/ready", "/metrics", "/models"),
    *("/v1/models", "/info", "/docs", "/openapi.json"),
)


def ask(service: Process, method: str, path: str) -> httpx.Response:
    url = service.url() + path
    return httpx.request(method, url, headers=bearer(KEY), timeout=PATIENCE)


@pytest.mark.parametrize("path", GET)
def test_head_is_get_without_the_body(service: Process, path: str) -> None:
    head, get = (ask(service, method, path) for method in ("HEAD", "GET"))
    assert head.status_code == get.status_code == 200
    assert head.content == b""
    assert head.headers["Content-Type"] == get.headers["Content-Type"]
    assert head.headers["X-Request-Id"]
    if path != "/metrics":  # its numbers move
        assert head.headers["Content-Length"] == get.headers["Content-Length"]
    refused = ask(service, "HEAD", "/embed")
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
    (400, "invalid_http", bytes(range(128, 160)) + b"\r\n\r\n"),
    (400, "invalid_http", b"GET /health HTTP/1.1\r\n\r\n"),  # it names no host
    (400, "invalid_http", HEALTH + b"host: a\r\n\r\n"),
    (400, "invalid_http", b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"),
    (400, "invalid_http", b"get /health HTTP/1.1\r\nHost: a\r\n\r\n"),
    (414, "url_too_long", b"GET /" + b"a" * 20_000),
    (431, "headers_too_large", HEALTH + NAMED + LARGE),
    (431, "headers_too_large", HEALTH + LARGE + b"\r\nX-Request-Id: a"),
    (431, "headers_too_large", HEALTH + LINE * 1200),
    (431, "headers_too_large", HEALTH + b"A: b\r\n" * 200),
    (431, "headers_too_large", HEALTH + b"a" * 600_000),
    (431, "headers_too_large", CHUNKS + b"\r\n0\r\n" + LINE * 1200),
    (431, "headers_too_large", CHUNKS + b"\r\n0\r\n" + LARGE),
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
    head, _ = raw(
        service,
        b"POST /embed HTTP/1.0\r\nAuthorization: Bearer %b\r\nContent-Type: application/json\r\n"
        b'Expect: 100-continue\r\nContent-Length: 22\r\n\r\n{"inputs": "Two kids"}' % KEY.encode(),
    )
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


def test_an_answer_leaves_in_one_piece(service: Process) -> None:
    """Head and body in one system call."""
    with connect(service) as connection:
        for _ in range(50):
            connection.sendall(HEALTH + b"\r\n")
            head, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            [length] = re.findall(rb"content-length: (\d+)", head, re.I)
            assert len(body) == int(length) > 0
        connection.sendall(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")  # a head alone leaves too
        assert connection.recv(65536).endswith(b"\r\n\r\n")


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
    with connect(service, buffer=4096) as connection:
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
