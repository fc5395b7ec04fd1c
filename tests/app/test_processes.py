"""Several real serving processes behind one port: kills, hangs, reloads, and the end of the service.

tests/faults has kills, stops and reloads under load.
"""

import json
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from heedful.text.parse import fingerprint
from tests.app.conftest import KEY, Start
from tests.app.two_processes import (
    ALLOWED,
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
from tests.builders import BuiltParser, build_bundle
from tests.process import PATIENCE, Process, wait_for

pytestmark = pytest.mark.slow
BODY = {"inputs": ["the kids", "a dog"], "model": "tiny-nli"}
SENT = json.dumps(BODY).encode()
ANSWERED = r'requests_total\{model="tiny-nli",route="/embed",status="200"\}'
HANGS = "hangs: killing it"


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    """A folder of bundles that the test may change."""
    return shutil.copytree(models, tmp_path / "bundles")


@pytest.fixture
def several(start: Start, folder: Path) -> Callable[..., Process]:
    """Starts a service of two processes on the bundles of `folder`."""
    return partial(start, processes="2", models=str(folder))


def rebuild(folder: Path, name: str, **card: Any) -> None:
    parser = BuiltParser(folder / "parser", "en_tiny", fingerprint(folder / "parser"))
    build_bundle(folder, parser, name=name, kind="nli", **card)


def clients(url: str, stack: ExitStack, number: int) -> list[httpx.Client]:
    """Clients with one connection each."""
    opened = (httpx.Client(base_url=url, headers=ALLOWED, timeout=PATIENCE) for _ in range(number))
    return [stack.enter_context(client) for client in opened]


def answered(url: str) -> bool:
    """Whether a request on a new connection is answered."""
    with suppress(httpx.TransportError):
        answer = httpx.post(url + "/embed", json=BODY, headers=ALLOWED, timeout=PATIENCE)
        return answer.status_code == 200
    return False


def send(pids: list[int], which: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, which)


def count_of(service: Process, name: str) -> float:
    return counted(page(service), name)


def test_all_processes_answer_alike_and_one_page_counts_them_all(service: Process) -> None:
    ready(service)
    before = count_of(service, ANSWERED)
    with ExitStack() as stack:
        # All of them go to one process once in eight million runs.
        connected = clients(service.url(), stack, 24)
        rows = np.array([client.post("/embed", json=BODY).json() for client in connected])
        assert np.abs(rows - rows[0]).max() < 1e-6

        def whole(client: httpx.Client) -> str | None:
            """The page, once it counts all: an answer is counted after its last byte."""
            text: str = client.get("/metrics").text
            return text if counted(text, ANSWERED) == before + 24 else None

        for client in connected[:8]:
            text = wait_for(partial(whole, client), "all answers on the page of metrics")
            assert counted(text, r'model_info\{[^}]*model="tiny-nli"[^}]*\}') == 1
        wanted = {"Accept": "application/openmetrics-text; version=1.0.0"}
        families = text_string_to_metric_families(connected[0].get("/metrics", headers=wanted).text)
        assert "heedful_request_duration_seconds" in {family.name for family in families}
        created = {c.get("/v1/models").json()["data"][0]["created"] for c in connected}
        assert len(created) == 1


def test_processes_without_descriptors_close_connections_and_go_on(service: Process) -> None:
    servers, limits = service.servers(), {}
    for pid in servers:  # which may open two files more than they have
        count = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        limits[pid] = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (count + 2, limits[pid][1]))
    with connections(service, 32) as connected:
        for connection in connected:
            connection.sendall(HEALTH + b"Connection: close\r\n\r\n")
        answers = [until_closed(connection) for connection in connected]
    for pid, before in limits.items():
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert {answer[:13] for answer in answers} <= {b"HTTP/1.1 200 ", b""}
    assert all(healthy(service) for _ in range(8))
    assert service.servers() == servers


# The tests below kill processes in a row that may have started less than 3 seconds ago. Five would end the service.


def test_the_dead_leave_their_counts_and_no_file(service: Process) -> None:
    """Those that replace them continue the counts. Their clients are cut off."""
    ready(service)
    deaths, descriptors = count_of(service, "process_deaths_total"), service.descriptors()

    def ask_info(times: int) -> None:
        """A route that no other test asks this service: an answer is counted after it is sent."""
        httpx.get(service.url() + "/info", headers=ALLOWED, timeout=PATIENCE)
        counter = r'requests_total\{[^}]*route="/info"[^}]*\}'
        wait_for(lambda: count_of(service, counter) == times or None, "a count")

    ask_info(1)
    killed = service.servers()
    with connections(service, 8) as idle:
        for connection in idle:
            connection.sendall(HEALTH + b"\r\n")
            assert b"200 OK" in connection.recv(65536)
        send(killed, signal.SIGKILL)
        assert [until_closed(connection) for connection in idle] == [b""] * 8
    wait_for(lambda: not set(killed) & set(service.children()) or None, "their end")
    ready(service)
    ask_info(2)
    assert count_of(service, "process_deaths_total") == deaths + 2
    names = {path.name for path in Path(service.env["TMPDIR"]).rglob("*")}
    assert names <= {".ses"}  # ONNX Runtime's; none of them is ours
    wait_for(lambda: service.descriptors() <= descriptors + 4 or None, "no more descriptors")


def test_a_pause_of_all_is_no_hang(service: Process) -> None:
    """`docker pause` stops all processes."""
    ready(service)
    servers, hangs = service.servers(), service.log.count(HANGS)
    send([service.popen.pid, *servers], signal.SIGSTOP)
    time.sleep(6)  # the hang timeout is 4
    send([service.popen.pid, *servers], signal.SIGCONT)
    ready(service)
    assert service.servers() == servers
    assert service.log.count(HANGS) == hangs


def test_a_process_that_hangs_is_replaced_and_a_reload_does_not_wait_for_it(
    service: Process,
) -> None:
    ready(service)
    hanging, other = service.servers()
    hung = count_of(service, r'limits_total\{limit="hang_timeout"\}')
    send([hanging], signal.SIGSTOP)

    def missed() -> bool | None:
        with suppress(httpx.TransportError):  # it has fallen to the one that hangs
            told = httpx.get(service.url() + "/ready", timeout=1).text
            return "1 of 2 serving processes are up" in told or None
        return None

    def reloaded() -> bool | None:
        url = service.url() + "/models/reload"
        with suppress(httpx.TransportError):
            return httpx.post(url, headers=ALLOWED, timeout=30).is_success or None
        return None

    wait_for(missed, "/ready to tell it")
    wait_for(reloaded, "a reload")
    ready(service)
    assert hanging not in service.servers()
    assert other in service.servers()
    assert count_of(service, r'limits_total\{limit="hang_timeout"\}') == hung + 1


def test_a_reload_reaches_every_process(several: Callable[..., Process], folder: Path) -> None:
    process = several(api_key=KEY, cache_items="0")
    with ExitStack() as stack:
        connected = clients(process.ready(), stack, 4)

        def vector() -> tuple[float, ...]:
            """The vector that all processes answer."""
            answers = [client.post("/embed", json=BODY).json() for client in connected]
            [row] = {tuple(np.round(answer[0], 5)) for answer in answers}
            return row

        old = vector()
        rebuild(folder, "tiny-nli", alpha=0.25)
        answer = connected[1].post("/models/reload")
        others = ["tiny-flat", "tiny-related", "tiny-sst2"]
        assert answer.json() == {"loaded": ["tiny-nli"], "unchanged": others, "removed": []}
        new = vector()
        assert new != old
        text = connected[0].get("/metrics").text
        assert counted(text, r'model_info\{[^}]*model="tiny-nli"[^}]*\}') == 1

        graph = folder / "tiny-nli" / "encoder.onnx"
        graph.write_bytes(graph.read_bytes()[:-1])
        process.popen.send_signal(signal.SIGHUP)

        def reasons(client: httpx.Client) -> list[str] | None:
            return client.get("/ready").json().get("refused") or None

        for client in connected:  # each process reloads in its own time
            [reason] = wait_for(partial(reasons, client), "a refusal")
            assert reason.startswith("bundle tiny-nli: encoder.onnx: ")
        assert vector() == new


def replace_one(process: Process) -> None:
    """Kill a serving process, and wait until another serves in its place."""
    killed = process.servers()[0]
    send([killed], signal.SIGKILL)

    def another() -> bool | None:
        gone = killed not in process.children()  # a process that is ending still has its sockets
        return (gone and len(process.servers()) == 2) or None

    wait_for(another, "another process")
    ready(process)


def test_who_is_replaced_has_the_models_of_the_others(
    several: Callable[..., Process], folder: Path, tmp_path: Path
) -> None:
    """It has the models of the start, after a reload those of the folder. The service ends when no process starts."""
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
    rebuild(folder, "tiny-new")
    (folder / "tiny-flat").rename(tmp_path / "away")
    replace_one(process)
    for _ in range(4):
        names = {card["name"] for card in httpx.get(url + "/models").json()["models"]}
        assert {"tiny-new", "tiny-flat"} & names == {"tiny-new"}
    line = "reloaded: tiny-new new, tiny-flat removed"
    wait_for(lambda: line in process.log or None, "the line of the reload")

    (folder / "parser").rename(tmp_path / "parser")  # processes started from now on fail
    first, second = process.servers()
    send([first], signal.SIGKILL)
    wait_for(lambda: "does not start" in process.log or None, "a start that fails")
    time.sleep(3)
    assert process.log.count("does not start") == 1  # while another serves, a try takes 10 s
    wait_for(lambda: answered(url) or None, "an answer of the other")
    send([second], signal.SIGKILL)
    assert process.exit_status() == 1
    [fatal] = [line for line in process.log.splitlines() if " CRITICAL " in line]
    assert "serving processes have died again and again" in fatal
    assert "Traceback" not in process.log


def test_a_long_request_is_answered_after_sigterm(several: Callable[..., Process]) -> None:
    """The parent does not take its process for one that hangs."""
    process = several(hang_timeout="3")
    ready(process)
    with process.held(), connect(process) as connection:
        length = b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(SENT)
        connection.sendall(EMBED + AS_JSON + length)
        assert connection.recv(1024).startswith(b"HTTP/1.1 100 ")  # a process reads it
        connection.sendall(SENT)
        process.popen.send_signal(signal.SIGTERM)
        time.sleep(5)
        process.release()
        assert connection.recv(1024).startswith(b"HTTP/1.1 200 ")
    assert process.exit_status() == 0
    assert HANGS not in process.log


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_parent_is_that_of_all(
    several: Callable[..., Process], how: signal.Signals
) -> None:
    """Also a process that hangs, which cannot notice the parent's end."""
    process = several(shutdown_timeout="1")
    ready(process)
    children = process.children()
    send(process.servers()[:1], signal.SIGSTOP)
    process.popen.send_signal(how)
    assert process.exit_status() == (0 if how == signal.SIGTERM else -signal.SIGKILL)
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in children) or None, "all")
