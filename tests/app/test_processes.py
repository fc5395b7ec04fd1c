"""Several real serving processes behind one port: kills, hangs, reloads, and the end of the service."""

import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from heedful.runtime.bundles.card import GOLDEN
from heedful.runtime.bundles.golden import Golden, Outputs
from heedful.text.parse import fingerprint
from tests.app.conftest import KEY, Start
from tests.app.two_processes import (
    ALLOWED,
    HEALTH,
    connect,
    counted,
    healthy,
    page,
    ready,
    until_closed,
)
from tests.builders import BuiltParser, build_bundle
from tests.process import PATIENCE, Process, wait_for
from tests.runtime.test_bundle import replace_file

pytestmark = pytest.mark.slow
BODY = {"inputs": ["the kids", "a dog"], "model": "tiny-nli"}
ANSWERED = r'requests_total\{model="tiny-nli",route="/embed",status="200"\}'


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    """A folder of bundles that the test may change."""
    return shutil.copytree(models, tmp_path / "bundles")


@pytest.fixture
def several(start: Start, folder: Path) -> Callable[..., Process]:
    """Starts a service of two processes on the bundles of `folder`."""

    def make(**flags: str) -> Process:
        return start(**{"processes": "2", "models": str(folder), **flags})

    return make


@pytest.fixture
def clients() -> Iterator[Callable[[str, int], list[httpx.Client]]]:
    """Clients with one connection each."""
    with ExitStack() as stack:

        def make(url: str, number: int) -> list[httpx.Client]:
            opened = (
                httpx.Client(base_url=url, headers=ALLOWED, timeout=PATIENCE) for _ in range(number)
            )
            return [stack.enter_context(client) for client in opened]

        yield make


def connections(pid: int, port: int) -> int:
    """How many connections of clients the process holds."""
    held = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            held.add(str(entry.readlink()))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established = [row for row in rows if row[3] == "01" and row[1].endswith(f":{port:04X}")]
    return sum(f"socket:[{row[9]}]" in held for row in established)


def begin(url: str, body: bytes) -> socket.socket:
    """A connection whose request a serving process reads: only the body is unsent."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
    head = f"POST /embed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {len(body)}\r\n"
    expect = "Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n"
    connection.sendall((head + expect).encode())
    assert connection.recv(1024) == b"HTTP/1.1 100 Continue\r\n\r\n"
    return connection


def answered(url: str) -> bool:
    """Whether a request on a new connection is answered."""
    try:
        answer = httpx.post(url + "/embed", json=BODY, headers=ALLOWED, timeout=PATIENCE)
    except httpx.TransportError:
        return False
    return answer.status_code == 200


def replace_one(process: Process) -> None:
    """Kill a serving process, and wait until another serves in its place."""
    killed = process.servers()[0]
    os.kill(killed, signal.SIGKILL)

    def another() -> bool | None:
        gone = killed not in process.children()  # a process that is ending still has its sockets
        return (gone and len(process.servers()) == 2) or None

    wait_for(another, "another process")
    ready(process)


def test_connections_are_divided_and_one_page_counts_them_all(
    service: Process, clients: Callable[[str, int], list[httpx.Client]]
) -> None:
    ready(service)
    before, url = counted(page(service), ANSWERED), service.url()
    asking = clients(url, 24)  # all of them to one process: once in eight million runs
    answers = [client.post("/embed", json=BODY) for client in asking]
    port = int(url.rpartition(":")[2])
    held = [connections(pid, port) for pid in service.servers()]
    assert sum(held) >= 24  # the last probe of /ready may still be open
    assert min(held) > 0
    rows = np.array([answer.json() for answer in answers])
    assert np.abs(rows - rows[0]).max() < 1e-6

    def whole(client: httpx.Client) -> str | None:
        """The page, once it counts all: an answer is counted after its last byte."""
        found: str = client.get("/metrics").text
        return found if counted(found, ANSWERED) == before + 24 else None

    for client in asking[:8]:
        found = wait_for(partial(whole, client), "all answers on the page of metrics")
        assert counted(found, r'model_info\{[^}]*model="tiny-nli"[^}]*\}') == 1
    asked = {"Accept": "application/openmetrics-text; version=1.0.0"}
    families = text_string_to_metric_families(asking[0].get("/metrics", headers=asked).text)
    assert "heedful_request_duration_seconds" in {family.name for family in families}
    created = {c.get("/v1/models").json()["data"][0]["created"] for c in asking}
    assert len(created) == 1


def limit_descriptors(pid: int, more: int) -> tuple[int, int]:
    """Let the process open `more` files than it has; returns the limits that it had."""
    held = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (held + more, before[1]))
    return before


def test_processes_without_descriptors_close_connections_and_go_on(service: Process) -> None:
    servers = service.servers()
    limits = {pid: limit_descriptors(pid, 2) for pid in servers}
    with ExitStack() as stack:
        asking = [stack.enter_context(connect(service)) for _ in range(32)]
        for connection in asking:
            connection.sendall(HEALTH + b"Connection: close\r\n\r\n")
        answers = [until_closed(connection) for connection in asking]
    for pid, before in limits.items():
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert {answer[:13] for answer in answers} <= {b"HTTP/1.1 200 ", b""}
    assert all(healthy(service) for _ in range(8))
    assert service.servers() == servers


# Killed in this order no five of them die in a row within 3 seconds of their start, which would end the service.


def test_requests_in_flight_of_a_killed_process_are_cut_off_and_no_later_one(
    service: Process,
) -> None:
    ready(service)
    url, body = service.url(), json.dumps(BODY).encode()
    ends, deaths = service.log.count("has ended with status -9"), deaths_of(service)
    with service.held(), ExitStack() as stack:
        asking = [stack.enter_context(begin(url, body)) for _ in range(4)]
        for connection in asking:
            connection.sendall(body)
        for pid in service.servers():
            os.kill(pid, signal.SIGKILL)
        assert [until_closed(connection) for connection in asking] == [b""] * 4
    ended = "has ended with status -9"
    wait_for(lambda: service.log.count(ended) == ends + 2 or None, "their end")
    wait_for(lambda: answered(url) or None, "an answer")
    assert all(answered(url) for _ in range(20))
    assert deaths_of(service) == deaths + 2


def deaths_of(service: Process) -> float:
    return counted(page(service), "process_deaths_total")


def test_a_pause_of_all_is_no_hang(service: Process) -> None:
    """As by `docker pause`."""
    ready(service)
    servers, hangs = service.servers(), service.log.count("hangs: killing it")
    everyone = [service.popen.pid, *servers]
    for pid in everyone:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(6)  # the hang timeout is 4
    for pid in everyone:
        os.kill(pid, signal.SIGCONT)
    ready(service)
    assert service.servers() == servers
    assert service.log.count("hangs: killing it") == hangs


def test_an_idle_client_of_a_killed_process_is_told_nothing(service: Process) -> None:
    ready(service)
    with connect(service) as idle, connect(service) as other:
        for connection in (idle, other):
            connection.sendall(HEALTH + b"X-Request-Id: the-idle-one\r\n\r\n")
            assert b"200 OK" in connection.recv(65536)
        wait_for(lambda: service.log.count("the-idle-one") == 2 or None, "their end")
        killed = service.servers()
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        assert [until_closed(connection) for connection in (idle, other)] == [b"", b""]
    ready(service)


def test_a_reload_waits_for_no_process_that_hangs(service: Process) -> None:
    ready(service)
    hanging = service.servers()[0]
    os.kill(hanging, signal.SIGSTOP)

    def reloaded() -> bool | None:
        try:
            answer = httpx.post(service.url() + "/models/reload", headers=ALLOWED, timeout=30)
        except httpx.TransportError:
            return None
        return answer.is_success or None

    wait_for(reloaded, "a reload")
    assert hanging not in service.servers()
    ready(service)


def test_a_dead_process_leaves_its_counts_and_no_file(service: Process, temporary: Path) -> None:
    asked = r'^heedful_requests_total{model="none",route="/info",status="200"} (\S+)$'

    def count() -> float:
        page = httpx.get(service.url() + "/metrics", timeout=PATIENCE).text
        found = re.search(asked, page, re.M)
        return float(found[1]) if found else 0.0

    files = service.descriptors()
    # A route that no other test asks this service: an answer is counted after it is sent, here once.
    httpx.get(service.url() + "/info", headers=ALLOWED, timeout=PATIENCE)
    before = wait_for(lambda: count() or None, "a count")
    for _ in range(2):
        for pid in service.servers():
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: len(service.servers()) == 2 or None, "two others")
        ready(service)
    assert count() == before
    kept = {path.name for path in temporary.rglob("*")}
    assert kept <= {".ses"}  # ONNX Runtime's; none of them is ours
    wait_for(lambda: service.descriptors() <= files + 4 or None, "no more descriptors")


def test_a_process_that_hangs_is_replaced_and_its_connections_are_closed(service: Process) -> None:
    ready(service)
    hanging, other = service.servers()
    hung = counted(page(service), r'limits_total\{limit="hang_timeout"\}')
    with ExitStack() as stack:
        os.kill(hanging, signal.SIGSTOP)
        waiting = [stack.enter_context(connect(service)) for _ in range(16)]
        for connection in waiting:
            connection.sendall(HEALTH + b"\r\n")

        def missed() -> bool | None:
            try:
                answer = httpx.get(service.url() + "/ready", timeout=1)
            except httpx.TransportError:  # by the one that hangs
                return None
            return "1 of 2 serving processes are up" in answer.text or None

        wait_for(missed, "/ready to tell it")
        answers = [until_closed(connection)[:13] for connection in waiting]
        assert set(answers) == {b"HTTP/1.1 200 ", b""}  # some had fallen to the one that hangs
    wait_for(lambda: len(service.servers()) == 2 or None, "another")
    ready(service)
    assert hanging not in service.servers()
    assert other in service.servers()
    assert counted(page(service), r'limits_total\{limit="hang_timeout"\}') == hung + 1


def test_an_answer_that_was_half_sent_is_cut_off(service: Process) -> None:
    ready(service)
    host, _, port = service.url().removeprefix("http://").rpartition(":")
    body = json.dumps(
        {"inputs": ["the kids " * 8] * 4096, "model": "tiny-nli", "truncate": True}
    ).encode()
    head = f"POST /tokenize HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {len(body)}\r\n"
    with socket.socket() as connection:
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # a small buffer
        connection.connect((host, int(port)))
        connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        answer = connection.recv(1024)
        for _ in range(16):  # each answers: the one that sends has filled its buffers
            assert httpx.get(f"http://{host}:{port}/health").status_code == 200
        for pid in service.servers():
            os.kill(pid, signal.SIGKILL)
        answer += until_closed(connection)
    start, _, sent = answer.partition(b"\r\n\r\n")
    assert start.startswith(b"HTTP/1.1 200 OK")
    [length] = re.findall(rb"content-length: (\d+)", start, re.I)
    assert 0 < len(sent) < int(length)


def test_a_reload_reaches_every_process(
    several: Callable[..., Process],
    clients: Callable[[str, int], list[httpx.Client]],
    folder: Path,
) -> None:
    process = several(api_key=KEY, cache_items="0")
    asking = clients(process.ready(), 4)

    def rows() -> list[list[float]]:
        answers = [client.post("/embed", json=BODY) for client in asking]
        return [np.round(answer.json()[0], 5).tolist() for answer in answers]

    def version() -> set[str]:
        infos = re.findall(r"^heedful_model_info\{(.*)\}", asking[0].get("/metrics").text, re.M)
        return {info for info in infos if 'model="tiny-nli"' in info}

    [old] = {tuple(row) for row in rows()}
    before = version()
    parser = BuiltParser(folder / "parser", "en_tiny", fingerprint(folder / "parser"))
    build_bundle(folder, parser, name="tiny-nli", kind="nli", alpha=0.25)
    answer = asking[1].post("/models/reload")
    others = ["tiny-flat", "tiny-related", "tiny-sst2"]
    assert answer.json() == {"loaded": ["tiny-nli"], "unchanged": others, "removed": []}
    [new] = {tuple(row) for row in rows()}
    assert new != old
    assert len(version() - before) == 1 == len(version())

    graph = folder / "tiny-nli" / "encoder.onnx"
    graph.write_bytes(graph.read_bytes()[:-1])
    process.popen.send_signal(signal.SIGHUP)

    def refused_by(client: httpx.Client) -> list[str]:  # each process reloads in its own time
        return wait_for(lambda: client.get("/ready").json().get("refused") or None, "a refusal")

    for client in asking:
        [reason] = refused_by(client)
        assert reason.startswith("bundle tiny-nli: encoder.onnx: ")
    assert {tuple(row) for row in rows()} == {new}
    refused = asking[2].post("/models/reload")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "bundle_refused")

    def recorded() -> bool | None:  # by one process, which need not be the one that has answered
        page = asking[3].get("/metrics").text
        reloads = [
            counted(page, rf'reloads_total\{{result="{end}"\}}') for end in ("ok", "refused")
        ]
        said = process.log.count("bundle refused, the model served before stays")
        return (reloads, said) == ([1, 2], 2) or None

    wait_for(recorded, "the count of three reloads and the lines of two")

    build_bundle(folder, parser, name="tiny-nli", kind="nli", alpha=0.5)
    vectors = np.zeros((3, 1), np.float32)  # of no model's shape, which nothing looks at before
    outputs = Outputs(vectors, vectors)
    wrong = Golden(["a"], [["a"]], [np.array([0])], {"float32": outputs}, {})
    replace_file(folder / "tiny-nli", GOLDEN, wrong.to_bytes())
    failed = asking[0].post("/models/reload")
    assert (failed.status_code, failed.json()["error"]["code"]) == (503, "unavailable")
    line = "the reload failed, the models served before stay"
    wait_for(lambda: process.log.count(line) == 2 or None, "the lines of both processes")
    assert {tuple(row) for row in rows()} == {new}
    build_bundle(folder, parser, name="tiny-nli", kind="nli", alpha=0.5)
    assert asking[1].post("/models/reload").status_code == 200
    assert asking[1].get("/ready").json() == {"status": "ready", "refused": []}


def test_who_is_replaced_has_the_models_of_the_others(
    several: Callable[..., Process], folder: Path, tmp_path: Path
) -> None:
    """Those of the start, and after a reload those of the folder; the service ends when no process starts any more."""
    process = several()
    ready(process)
    url = process.url()
    folder.rename(tmp_path / "away")
    replace_one(process)
    assert all(answered(url) for _ in range(4))
    assert "reloaded:" not in process.log

    (tmp_path / "away").rename(folder)
    process.popen.send_signal(signal.SIGHUP)
    wait_for(lambda: "reloaded: none new, none removed" in process.log or None, "a reload")
    parser = BuiltParser(folder / "parser", "en_tiny", fingerprint(folder / "parser"))
    build_bundle(folder, parser, name="tiny-new", kind="nli")
    (folder / "tiny-flat").rename(tmp_path / "away")
    replace_one(process)
    for _ in range(4):
        names = {card["name"] for card in httpx.get(url + "/models").json()["models"]}
        assert {"tiny-new", "tiny-flat"} & names == {"tiny-new"}
    said = "reloaded: tiny-new new, tiny-flat removed"
    wait_for(lambda: said in process.log or None, "the line of the reload")

    (folder / "parser").rename(tmp_path / "parser")  # processes started from now on fail
    first, second = process.servers()
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: "does not start" in process.log or None, "a start that fails")
    time.sleep(3)
    assert process.log.count("does not start") == 1  # while another serves, a try takes 10 s
    wait_for(lambda: answered(url) or None, "an answer of the other")
    os.kill(second, signal.SIGKILL)
    assert process.exit_status() == 1
    [fatal] = [line for line in process.log.splitlines() if " CRITICAL " in line]
    assert "serving processes have died again and again" in fatal
    assert "Traceback" not in process.log


def test_a_long_request_is_answered_after_sigterm(several: Callable[..., Process]) -> None:
    """Its process is not taken for one that hangs."""
    process = several(hang_timeout="3")
    ready(process)
    url, body = process.url(), json.dumps(BODY).encode()
    with process.held(), begin(url, body) as connection:
        connection.sendall(body)
        process.popen.send_signal(signal.SIGTERM)
        time.sleep(5)
        process.release()
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == 200
    assert process.exit_status() == 0
    assert "hangs: killing it" not in process.log


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_parent_is_that_of_all(
    several: Callable[..., Process], how: signal.Signals
) -> None:
    """Of one that hangs too, which cannot notice it."""
    process = several(shutdown_timeout="1")
    ready(process)
    children = process.children()
    os.kill(process.servers()[0], signal.SIGSTOP)
    process.popen.send_signal(how)
    assert process.exit_status() == (0 if how == signal.SIGTERM else -signal.SIGKILL)
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in children) or None, "all")
