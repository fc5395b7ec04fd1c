"""Several real serving processes behind one port."""

import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from heedful.app.process.messages import WorkerReloaded
from heedful.app.process.reload_queue import shortened
from heedful.app.process.supervisor import Supervisor
from heedful.app.process.worker_group import Link, WorkerGroup, WorkerProcess
from heedful.app.settings import Settings
from heedful.runtime.bundles.card import GOLDEN
from heedful.runtime.bundles.golden import Golden, Outputs
from heedful.runtime.service import Reloaded
from heedful.text.parse import fingerprint
from tests.app.conftest import KEY, Start
from tests.builders import BuiltParser, build_bundle
from tests.process import PATIENCE, Process, wait_for
from tests.runtime.test_bundle import replace_file

BODY = {"inputs": ["the kids", "a dog"], "model": "tiny-nli"}
ALLOWED = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture
def several(start: Start) -> Callable[..., Process]:
    def make(**flags: str) -> Process:
        return start(processes="2", **flags)

    return make


def sockets(pid: int) -> set[str]:
    """The process's sockets, as "socket:[inode]"."""
    held = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            held.add(str(entry.readlink()))
    return held


def local_port(answer: httpx.Response) -> int:
    """Of the client."""
    stream = answer.extensions["network_stream"]
    return int(stream.get_extra_info("client_addr")[1])


def server_ends(answers: list[httpx.Response]) -> set[str]:
    """The service's ends of the connections of these answers, as "socket:[inode]"."""
    own = {local_port(answer) for answer in answers}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if int(row[2].rpartition(":")[2], 16) in own}


def begin(url: str, body: bytes) -> socket.socket:
    """A connection whose request is being read by a serving process: only the body is unsent."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
    head = f"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    expect = "Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n"
    connection.sendall((head + expect).encode())
    assert connection.recv(1024) == b"HTTP/1.1 100 Continue\r\n\r\n"
    return connection


def response(connection: socket.socket) -> tuple[int, str, dict[str, Any]]:
    """Status, request id and body."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer.status, answer.headers["X-Request-Id"], json.loads(answer.read())


def unacknowledged(connection: socket.socket) -> int:
    """Bytes that the peer's system has not received yet."""
    return int.from_bytes(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    """A folder of bundles that the test may change."""
    return shutil.copytree(models, tmp_path / "bundles")


@pytest.fixture
def two(several: Callable[..., Process], folder: Path) -> Process:
    """Two serving processes, ready, with the bundles of `folder`."""
    process = several(models=str(folder))
    both_ready(process)
    return process


@pytest.fixture
def clients() -> Iterator[Callable[[str, int], list[httpx.Client]]]:
    """Clients with one connection each."""
    with ExitStack() as stack:

        def make(url: str, number: int) -> list[httpx.Client]:
            return [
                stack.enter_context(httpx.Client(base_url=url, timeout=PATIENCE))
                for _ in range(number)
            ]

        yield make


def both_ready(process: Process) -> str:
    """The URL, once both serving processes are ready."""
    url = process.ready()
    wait_for(lambda: httpx.get(url + "/ready").is_success or None, "both")
    return url


def replace_one(process: Process) -> None:
    """Kill a serving process, and wait until another serves in its place."""
    killed = process.servers()[0]
    os.kill(killed, signal.SIGKILL)

    def another() -> bool | None:
        servers = process.servers()
        return (len(servers) == 2 and killed not in servers) or None

    wait_for(another, "another process")
    wait_for(lambda: httpx.get(process.url() + "/ready").is_success or None, "two of them")


def reload(process: Process) -> None:
    """And wait until every process has done it."""
    process.popen.send_signal(signal.SIGHUP)
    wait_for(lambda: "reloaded: none new, none removed" in process.log or None, "a reload")


def counted(page: str, name: str) -> float:
    """The sum of a metric's series."""
    found = re.findall(rf"^heedful_{name}(?:\{{[^}}]*\}})? (\S+)$", page, re.M)
    return sum(map(float, found))


def processor_time(client: httpx.Client) -> float:
    """Seconds of all serving processes, dead ones among them."""
    [seconds] = re.findall(r"^process_cpu_seconds_total (\S+)$", client.get("/metrics").text, re.M)
    return float(seconds)


def test_connections_are_divided_and_one_page_counts_them_all(
    several: Callable[..., Process], clients: Callable[[str, int], list[httpx.Client]]
) -> None:
    process = several()
    url = process.ready()
    wait_for(lambda: len(process.servers()) == 2 or None, "two serving processes")
    asking = clients(url, 8)
    answers = [client.post("/embed", json=BODY) for client in asking]
    ends = server_ends(answers)
    assert [len(sockets(pid) & ends) for pid in process.servers()] == [4, 4]
    rows = np.array([answer.json() for answer in answers])
    assert np.abs(rows - rows[0]).max() < 1e-6

    def whole(client: httpx.Client) -> str | None:
        """The page, once it counts all eight: an answer is counted after its last byte."""
        page = client.get("/metrics").text
        answered = r'requests_total\{model="tiny-nli",route="/embed",status="200"\}'
        return page if counted(page, answered) == 8 else None

    for client in asking[:2]:  # one per process
        page = wait_for(partial(whole, client), "eight answers on the page of metrics")
        assert counted(page, r'model_info\{[^}]*model="tiny-nli"[^}]*\}') == 1
    asked = {"Accept": "application/openmetrics-text; version=1.0.0"}
    families = text_string_to_metric_families(asking[0].get("/metrics", headers=asked).text)
    assert "heedful_request_duration_seconds" in {family.name for family in families}
    created = {c.get("/v1/models").json()["data"][0]["created"] for c in asking}
    assert len(created) == 1


def test_a_reload_reaches_every_process(
    several: Callable[..., Process],
    clients: Callable[[str, int], list[httpx.Client]],
    folder: Path,
    tmp_path: Path,
) -> None:
    process = several(models=str(folder), api_key=KEY, cache_items="0")
    asking = clients(process.ready(), 4)

    def rows() -> list[list[float]]:
        answers = [client.post("/embed", json=BODY, headers=ALLOWED) for client in asking]
        return [np.round(answer.json()[0], 5).tolist() for answer in answers]

    [old] = {tuple(row) for row in rows()}
    parser = BuiltParser(folder / "parser", "en_tiny", fingerprint(folder / "parser"))
    build_bundle(folder, parser, name="tiny-nli", kind="nli", alpha=0.25)
    answer = asking[1].post("/models/reload", headers=ALLOWED)
    assert (answer.status_code, answer.json()["loaded"]) == (200, ["tiny-nli"])
    [new] = {tuple(row) for row in rows()}
    assert new != old

    graph = folder / "tiny-nli" / "encoder.onnx"
    graph.write_bytes(graph.read_bytes()[:-1])
    process.popen.send_signal(signal.SIGHUP)

    def refused_by(client: httpx.Client) -> list[str]:  # each process reloads in its own time
        return wait_for(lambda: client.get("/ready").json().get("refused") or None, "a refusal")

    for client in asking:
        [reason] = refused_by(client)
        assert reason.startswith("bundle tiny-nli: encoder.onnx: ")
    assert {tuple(row) for row in rows()} == {new}
    refused = asking[2].post("/models/reload", headers=ALLOWED)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "bundle_refused")
    page = asking[3].get("/metrics").text
    assert counted(page, r'reloads_total\{result="ok"\}') == 1
    assert counted(page, r'reloads_total\{result="refused"\}') == 2
    assert process.log.count("bundle refused, the model served before stays") == 2

    build_bundle(folder, parser, name="tiny-nli", kind="nli", alpha=0.5)
    vectors = np.zeros((3, 1), np.float32)  # of no model's shape, which nothing looks at before
    outputs = Outputs(vectors, vectors)
    wrong = Golden(["a"], [["a"]], [np.array([0])], {"float32": outputs}, {})
    replace_file(folder / "tiny-nli", GOLDEN, wrong.to_bytes())
    failed = asking[0].post("/models/reload", headers=ALLOWED)
    assert (failed.status_code, failed.json()["error"]["code"]) == (503, "unavailable")
    assert process.log.count("the reload failed, the models served before stay") == 2
    assert {tuple(row) for row in rows()} == {new}
    build_bundle(folder, parser, name="tiny-nli", kind="nli", alpha=0.5)
    assert asking[1].post("/models/reload", headers=ALLOWED).status_code == 200


def test_requests_in_flight_of_a_killed_process_get_a_503(several: Callable[..., Process]) -> None:
    process = several()
    url = both_ready(process)
    body = json.dumps(BODY).encode()
    with process.held(), ExitStack() as stack:
        asking = [stack.enter_context(begin(url, body)) for _ in range(4)]
        for connection in asking:
            connection.sendall(body)
        for pid in process.servers():
            os.kill(pid, signal.SIGKILL)
        ends = [response(connection) for connection in asking]
    assert [status for status, _, _ in ends] == [503] * 4
    assert {answer["error"]["type"] for _, _, answer in ends} == {"server_error"}
    wait_for(lambda: httpx.get(url + "/ready").is_success or None, "two of them")
    page = httpx.get(url + "/metrics").text
    assert counted(page, "process_deaths_total") == 2
    logged = re.findall(r" route=other status=503 request_id=(\w+)", process.log)
    assert {request_id for _, request_id, _ in ends} <= set(logged)  # with polls of /ready
    assert counted(page, r'requests_total\{[^}]*route="other",status="503"\}') == len(logged)
    assert counted(page, r'rejected_total\{reason="unavailable"\}') == len(logged)


def test_a_request_that_a_process_had_just_read_when_it_was_killed_gets_a_503(
    models: Path, tmp_path: Path, clients: Callable[[str, int], list[httpx.Client]]
) -> None:
    """Otherwise another process would wait for the rest of it, and then close the connection."""
    flags = {"port": "0", "models": str(models), "processes": "2", "threads": "1"}
    process = Process(tmp_path / "log", flags, {}, (sys.executable, "-m", "tests.app.dying"))
    try:
        url = both_ready(process)
        asking = clients(url, 3)
        for client in asking:  # the first and the last are of one process
            assert client.get("/health").status_code == 200
        port = local_port(asking[0].get("/health"))
        for client in (asking[2], asking[1]):  # the first is another process's each time
            wait_for(lambda: httpx.get(url + "/ready").is_success or None, "two of them")
            died = client.get("/die")
            assert (died.status_code, died.json()["error"]["code"]) == (503, "unavailable")
            assert local_port(asking[0].get("/health")) == port  # it waited for a request
        assert asking[0].get("/die").status_code == 503
    finally:
        process.close()


def test_a_client_that_is_still_sending_reads_the_503(several: Callable[..., Process]) -> None:
    process = several()
    body = b"x" * 3000
    with begin(process.ready(), body) as connection:
        killed = set(process.servers())
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: killed.isdisjoint(process.servers()) or None, "their end")
        assert connection.recv(1, socket.MSG_PEEK)  # the answer is there, and unread
        for start in range(0, len(body), 1000):
            connection.sendall(body[start : start + 1000])
            # A closed connection would be reset now, and the next line fail.
            wait_for(lambda: unacknowledged(connection) == 0 or None, "its arrival")
        status, _, answer = response(connection)
        assert (status, answer["error"]["code"]) == (503, "unavailable")


def test_an_answer_that_was_half_sent_is_cut_off(several: Callable[..., Process]) -> None:
    """A 503 would be read as its rest."""
    process = several(max_queue="8192", max_batch_inputs="8192")
    host, _, port = process.ready().removeprefix("http://").rpartition(":")
    body = json.dumps(
        {"inputs": ["the kids " * 8] * 8192, "model": "tiny-nli", "truncate": True}
    ).encode()
    head = f"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    with socket.socket() as connection:
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # a small buffer
        connection.connect((host, int(port)))
        connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        answer = connection.recv(1024)
        for _ in process.servers():  # each answers: the one that sends has filled its buffers
            assert httpx.get(f"http://{host}:{port}/health").status_code == 200
        for pid in process.servers():
            os.kill(pid, signal.SIGKILL)
        while chunk := connection.recv(1 << 20):
            answer += chunk
    start, _, sent = answer.partition(b"\r\n\r\n")
    assert start.startswith(b"HTTP/1.1 200 OK")
    [length] = re.findall(rb"content-length: (\d+)", start, re.I)
    assert 0 < len(sent) < int(length)
    assert b"HTTP/1.1 503" not in sent


def test_one_that_is_killed_is_replaced_and_the_others_go_on(
    several: Callable[..., Process], clients: Callable[[str, int], list[httpx.Client]]
) -> None:
    process = several()
    url = both_ready(process)
    asking = clients(url, 2)
    ports = {}
    for client in asking:
        answer = client.post("/embed", json=BODY)
        assert answer.status_code == 200
        ports[client] = local_port(answer)
    used = processor_time(asking[0])
    for _ in range(2):  # each process answers again, so it has finished with the answer before
        assert httpx.get(url + "/health").status_code == 200
    killed, other = process.servers()
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: "has ended with status -9" in process.log or None, "its end")
    assert processor_time(asking[0]) >= used  # a counter never falls
    for client in asking:  # an idle connection stays open: the other process has it now
        answer = client.post("/embed", json=BODY)
        assert answer.status_code == 200
        assert local_port(answer) == ports[client]
    for _ in range(4):  # new connections go to the one that is left
        assert httpx.post(url + "/embed", json=BODY, timeout=PATIENCE).status_code == 200
    wait_for(lambda: httpx.get(url + "/ready").is_success or None, "two of them")
    assert other in process.servers()
    assert len(process.servers()) == 2
    page = httpx.get(url + "/metrics").text
    # With the killed one's.
    assert counted(page, r'requests_total\{[^}]*route="/embed",status="200"\}') >= 6
    process.popen.send_signal(signal.SIGTERM)
    assert process.exit_status() == 0


def test_a_long_request_is_answered_after_sigterm(several: Callable[..., Process]) -> None:
    """Its process is not taken for one that hangs."""
    process = several(hang_timeout="3")
    url, body = both_ready(process), json.dumps(BODY).encode()
    with process.held(), begin(url, body) as connection:
        connection.sendall(body)
        process.popen.send_signal(signal.SIGTERM)
        time.sleep(5)
        process.release()
        assert response(connection)[0] == 200
    assert process.exit_status() == 0
    assert "hangs: killing it" not in process.log


def test_one_that_is_replaced_has_the_models_of_the_start(
    two: Process, folder: Path, tmp_path: Path
) -> None:
    url = two.url()
    folder.rename(tmp_path / "away")
    replace_one(two)
    for _ in range(4):
        assert httpx.post(url + "/embed", json=BODY, timeout=PATIENCE).status_code == 200
    assert "reloaded:" not in two.log


def test_after_a_reload_one_that_is_replaced_reads_the_folder_and_serves_the_models_of_the_others(
    two: Process, folder: Path, tmp_path: Path
) -> None:
    url = two.url()
    reload(two)
    parser = BuiltParser(folder / "parser", "en_tiny", fingerprint(folder / "parser"))
    build_bundle(folder, parser, name="tiny-new", kind="nli")
    (folder / "tiny-nli").rename(tmp_path / "away")
    replace_one(two)
    for _ in range(4):
        names = [card["name"] for card in httpx.get(url + "/models").json()["models"]]
        assert "tiny-new" in names
        assert "tiny-nli" not in names
    assert "reloaded: tiny-new new, tiny-nli removed" in two.log


def test_sigterm_ends_them_all_with_0(several: Callable[..., Process]) -> None:
    process = several(log_format="json")
    url = process.ready()
    assert httpx.post(url + "/embed", json=BODY, timeout=PATIENCE).status_code == 200
    children = process.children()
    process.popen.send_signal(signal.SIGTERM)
    assert process.exit_status() == 0
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in children) or None, "all")
    assert all(json.loads(line) for line in process.log.splitlines())


def test_the_reasons_of_many_refusals_fit_into_a_message() -> None:
    result = Reloaded(
        loaded=("a",), refused=tuple(f"{i} " + "\U0001f600" * 9999 for i in range(99))
    )
    one_end, other_end = Link.pair(1)
    one_end.send(WorkerReloaded(shortened(result)))
    received = other_end.receive()
    one_end.close()
    other_end.close()
    assert isinstance(received, WorkerReloaded)
    assert received.result is not None
    assert received.result.loaded == ("a",)
    assert [reason.split()[0] for reason in received.result.refused] == [
        *map(str, range(25)),
        "and",
    ]


def test_a_process_that_hangs_is_killed_once_and_a_pause_of_all_is_no_hang(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()

    def paused(_: float) -> list[Any]:
        nonlocal now
        now += 100.0
        return []

    monkeypatch.setattr("heedful.app.process.supervisor.time", Mock(monotonic=lambda: now))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        supervisor = Supervisor(listener, WorkerGroup.create(1), Settings(), lambda *_: 0, None)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        link, other_end = Link.pair(1)
        process = WorkerProcess(child.pid, link, now)
        supervisor._processes.append(process)
        with monkeypatch.context() as patch:
            patch.setattr(supervisor._selector, "select", paused)
            supervisor._poll()  # as after `docker pause`
        assert not process.silent
        assert not process.killed
        supervisor._kill_at = now
        for _ in range(3):
            supervisor._look_after(now + 1)
        link.close()
        other_end.close()
    assert child.wait(PATIENCE) == -signal.SIGKILL
    assert caplog.text.count("hangs: killing it") == 1


def test_a_supervisor_that_is_killed_leaves_nothing_behind(
    several: Callable[..., Process],
) -> None:
    process = several()
    process.ready()
    children = process.children()
    os.kill(process.servers()[0], signal.SIGSTOP)  # one that cannot notice it
    process.popen.kill()

    def gone() -> bool | None:
        return not any(Path(f"/proc/{pid}/exe").exists() for pid in children) or None

    wait_for(gone, "their end")


def test_the_service_ends_when_no_process_is_left_and_none_starts(
    two: Process, folder: Path, tmp_path: Path
) -> None:
    url = two.url()
    reload(two)
    (folder / "parser").rename(tmp_path / "away")  # processes started from now on fail
    first, second = two.servers()
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: "does not start" in two.log or None, "a start that fails")
    time.sleep(3)
    assert two.log.count("does not start") == 1  # while another serves, a try takes 10 s
    assert httpx.post(url + "/embed", json=BODY, timeout=PATIENCE).status_code == 200
    os.kill(second, signal.SIGKILL)
    assert two.exit_status() == 1
    [fatal] = [line for line in two.log.splitlines() if " CRITICAL " in line]
    assert "serving processes have died again and again" in fatal
    assert "Traceback" not in two.log
