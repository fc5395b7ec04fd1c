"""Several real serving processes behind one port."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from heedful.runtime.bundles.card import GOLDEN
from heedful.runtime.bundles.golden import Golden, Outputs
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


def until_closed(connection: socket.socket) -> bytes:
    """What comes until the service closes the connection."""
    read = b""
    with suppress(ConnectionResetError):
        while chunk := connection.recv(1 << 20):
            read += chunk
    return read


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
        gone = killed not in process.children()  # a process that is ending still has its sockets
        return (gone and len(process.servers()) == 2) or None

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


def test_connections_are_divided_and_one_page_counts_them_all(
    several: Callable[..., Process], clients: Callable[[str, int], list[httpx.Client]]
) -> None:
    process = several()
    url = both_ready(process)
    asking = clients(url, 24)  # all of them to one process: once in eight million runs
    answers = [client.post("/embed", json=BODY) for client in asking]
    port = int(url.rpartition(":")[2])
    held = [connections(pid, port) for pid in process.servers()]
    assert sum(held) >= 24  # the last probe of /ready may still be open
    assert min(held) > 0
    rows = np.array([answer.json() for answer in answers])
    assert np.abs(rows - rows[0]).max() < 1e-6

    def whole(client: httpx.Client) -> str | None:
        """The page, once it counts all: an answer is counted after its last byte."""
        page = client.get("/metrics").text
        answered = r'requests_total\{model="tiny-nli",route="/embed",status="200"\}'
        return page if counted(page, answered) == 24 else None

    for client in asking[:8]:
        page = wait_for(partial(whole, client), "all answers on the page of metrics")
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
    failed = asking[0].post("/models/reload", headers=ALLOWED)
    assert (failed.status_code, failed.json()["error"]["code"]) == (503, "unavailable")
    assert process.log.count("the reload failed, the models served before stay") == 2
    assert {tuple(row) for row in rows()} == {new}
    build_bundle(folder, parser, name="tiny-nli", kind="nli", alpha=0.5)
    assert asking[1].post("/models/reload", headers=ALLOWED).status_code == 200


def test_requests_in_flight_of_a_killed_process_are_cut_off_and_no_later_one(
    several: Callable[..., Process],
) -> None:
    process = several()
    url = both_ready(process)
    body = json.dumps(BODY).encode()
    with process.held(), ExitStack() as stack:
        asking = [stack.enter_context(begin(url, body)) for _ in range(4)]
        for connection in asking:
            connection.sendall(body)
        for pid in process.servers():
            os.kill(pid, signal.SIGKILL)
        assert [until_closed(connection) for connection in asking] == [b""] * 4
    wait_for(lambda: process.log.count("has ended with status -9") == 2 or None, "their end")
    wait_for(lambda: answers(url) or None, "an answer")
    assert all(answers(url) for _ in range(20))
    page = httpx.get(url + "/metrics").text
    assert counted(page, "process_deaths_total") == 2


def answers(url: str) -> bool:
    """Whether a request on a new connection is answered."""
    try:
        return httpx.post(url + "/embed", json=BODY, timeout=PATIENCE).status_code == 200
    except httpx.TransportError:
        return False


def test_an_answer_that_was_half_sent_is_cut_off(several: Callable[..., Process]) -> None:
    process = several(max_queue="8192", max_batch_inputs="8192")
    host, _, port = process.ready().removeprefix("http://").rpartition(":")
    body = json.dumps(
        {"inputs": ["the kids " * 8] * 4096, "model": "tiny-nli", "truncate": True}
    ).encode()
    head = f"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    with socket.socket() as connection:
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # a small buffer
        connection.connect((host, int(port)))
        connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        answer = connection.recv(1024)
        for _ in range(16):  # each answers: the one that sends has filled its buffers
            assert httpx.get(f"http://{host}:{port}/health").status_code == 200
        for pid in process.servers():
            os.kill(pid, signal.SIGKILL)
        answer += until_closed(connection)
    start, _, sent = answer.partition(b"\r\n\r\n")
    assert start.startswith(b"HTTP/1.1 200 OK")
    [length] = re.findall(rb"content-length: (\d+)", start, re.I)
    assert 0 < len(sent) < int(length)


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
    said = "reloaded: tiny-new new, tiny-nli removed"
    wait_for(lambda: said in two.log or None, "the line of the reload")


def test_a_pause_of_all_is_no_hang(several: Callable[..., Process]) -> None:
    """As by `docker pause`."""
    process = several(hang_timeout="2")
    url = both_ready(process)
    servers = process.servers()
    everyone = [process.popen.pid, *servers]
    for pid in everyone:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(5)
    for pid in everyone:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: httpx.get(url + "/ready").is_success or None, "both")
    assert process.servers() == servers
    assert "hangs: killing it" not in process.log


def test_a_parent_that_is_killed_leaves_nothing_behind(
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
