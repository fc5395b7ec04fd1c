"""A real process: what it listens on, start-up, signals, faults, and Prometheus."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from heedful.app.process.listening import listen, remove_file
from heedful.runtime.errors import StartupError
from tests.app.conftest import Start
from tests.process import HOLDING, PATIENCE, ROOT, Process, ready_at, tool, wait_for

BODY = {"inputs": ["a", "b"], "model": "tiny-nli"}
TIGHT = {"max_queue": "2", "max_batch_inputs": "2"}


def test_a_file_is_one_socket_for_all_processes(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:  # as a service that was killed leaves it
        left.bind(str(file))
    process = start(host=f"unix:{file}", processes="2")

    def answers() -> bool | None:
        assert not process.ended(), process.log
        return ready_at("http://heedful", transport=httpx.HTTPTransport(uds=str(file)))

    def ended(pid: int) -> bool | None:
        return pid not in process.children() or None

    wait_for(lambda: f"listening on unix:{file}" in process.log or None, "a listening service")
    wait_for(answers, "an answer")
    for killed in process.servers():
        os.kill(killed, signal.SIGKILL)
        wait_for(partial(ended, killed), "its end")
        wait_for(answers, "an answer of another process, or of its replacement")
    process.popen.send_signal(signal.SIGTERM)
    assert process.exit_status() == 0
    assert not file.exists()


def test_a_socket_may_be_passed_as_systemd_does(models: Path, tmp_path: Path) -> None:
    passing = (
        "import os, socket, sys; passed = socket.create_server(('127.0.0.1', 0)); os.dup2(passed.fileno(), 3); "
        "os.set_inheritable(3, True); os.execv(sys.executable, [sys.executable, '-m', 'heedful', *sys.argv[1:]])"
    )
    flags = {"host": "fd:3", "models": str(models), "processes": "2"}
    process = Process(tmp_path / "log", flags, HOLDING, (sys.executable, "-c", passing))
    with contextlib.closing(process):
        assert process.ready()


def test_addresses_of_ipv6() -> None:
    """They may have brackets; "::" is IPv4 too."""
    for host in ("::1", "[::1]"):
        with listen(host, 0) as listener:
            assert listener.getsockname()[0] == "::1"
    with listen("::", 0) as listener, socket.socket() as client:
        client.connect(("127.0.0.1", listener.getsockname()[1]))


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("nowhere.invalid", "give an address, a name, unix:PATH or fd:NUMBER"),
        ("fd:x", "pass a listening socket"),
        ("fd:12345", "pass a listening socket"),
        ("unix:/nowhere/at/all", "cannot listen on unix:/nowhere/at/all: No such file"),
        ("unix:" + "x" * 200, "path too long"),
    ],
)
def test_what_is_no_place_to_listen_at_is_one_line(host: str, reason: str) -> None:
    with pytest.raises(StartupError, match=reason) as caught:
        listen(host, 0)
    assert "\n" not in str(caught.value)


def test_what_is_there_already_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with listen(f"unix:{tmp_path / 'socket'}", 0):
        for name in ("file", "socket"):
            with pytest.raises(StartupError, match="in use"):
                listen(f"unix:{tmp_path / name}", 0)
    assert (tmp_path / "file").read_text() == "mine"
    for _ in range(2):
        remove_file(f"unix:{tmp_path / 'socket'}")
    with socket.socket() as silent, pytest.raises(StartupError, match="does not listen"):
        listen(f"fd:{silent.fileno()}", 0)


def http_connection(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)


@contextlib.contextmanager
def in_flight(url: str) -> Iterator[http.client.HTTPConnection]:
    """A request that fills a queue of two, in a service whose models are held."""
    with contextlib.closing(http_connection(url)) as connection:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/embed", json.dumps(BODY), headers)
        # It was sent first and accepted first: the next one finds the queue full.
        assert httpx.post(url + "/embed", json=BODY, timeout=PATIENCE).status_code == 429
        yield connection


def begin_its_end(process: Process) -> None:
    process.popen.send_signal(signal.SIGTERM)
    url = process.url() + "/ready"
    wait_for(lambda: httpx.get(url).status_code == 503 or None, "the end to begin")


def ended(process: Process) -> bool:
    return process.exit_status() == 0 and "Traceback" not in process.log


def test_sigterm_answers_requests_in_flight_and_refuses_new_ones(start: Start) -> None:
    process = start(**TIGHT, idle_timeout="200")
    url = process.ready()
    idle = http_connection(url)
    idle.request("GET", "/health")
    assert idle.getresponse().read()
    assert idle.sock
    with process.held(), in_flight(url) as first, contextlib.closing(idle):
        begin_its_end(process)
        assert idle.sock.recv(1) == b""  # closed: its client asks elsewhere
        refused = httpx.post(url + "/embed", json=BODY)
        assert refused.status_code == 503
        assert refused.headers["Connection"] == "close"
        assert refused.json()["error"]["code"] == "unavailable"
        assert httpx.get(url + "/health").status_code == 200
        process.release()
        answer = first.getresponse()
        assert (answer.status, answer.headers["Connection"]) == (200, "close")
        assert len(json.loads(answer.read())) == 2
    assert ended(process)


def test_sigterm_ends_ndjson_between_two_lines(start: Start) -> None:
    process = start()
    url, body = process.ready(), b'{"inputs": "kids"}'
    line = b'12\r\n{"inputs": "kids"}\r\n1\r\n\n\r\n'
    slow, lines = http_connection(url), http_connection(url)
    with contextlib.closing(slow), contextlib.closing(lines):
        slow.putrequest("POST", "/embed")
        slow.putheader("Content-Type", "application/json")
        slow.putheader("Content-Length", str(len(body)))
        slow.endheaders(body[:-5])
        lines.putrequest("POST", "/embed")
        lines.putheader("Content-Type", "application/x-ndjson")
        lines.putheader("Transfer-Encoding", "chunked")
        lines.endheaders(line)
        answered = lines.getresponse()
        assert "answer" in json.loads(answered.readline())
        begin_its_end(process)
        lines.send(line)
        refused = json.loads(answered.readline())
        assert (refused["line"], refused["error"]["code"]) == (1, "unavailable")
        assert answered.readline() == b""  # ended as it should, though its client would go on
        slow.send(body[-5:])
        assert slow.getresponse().status in (200, 503)  # it is answered, not cut off
    assert ended(process)


def test_who_goes_away_frees_the_queue_and_the_shutdown_timeout_bounds_the_wait(
    start: Start,
) -> None:
    process = start(**TIGHT, shutdown_timeout="0.2")
    url = process.ready()
    with process.held():
        with in_flight(url):
            pass
        gone = 'requests_total{model="tiny-nli",route="/embed",status="499"} 1.0'
        wait_for(lambda: gone in httpx.get(url + "/metrics").text or None, "the end of the first")
        with in_flight(url) as second:
            process.popen.send_signal(signal.SIGTERM)
            answer = second.getresponse()
            code = json.loads(answer.read())["error"]["code"]
            assert (answer.status, code) == (503, "unavailable")
    assert ended(process)


@pytest.mark.parametrize("listening", [True, False])
def test_sigterm_at_the_start_exits_0(start: Start, listening: bool) -> None:
    """While it loads, and before it listens: without a handler the first process of a container would not get the
    signal."""
    process = start(shutdown_timeout="20")

    def handled() -> bool | None:
        status = Path(f"/proc/{process.popen.pid}/status").read_text()
        [mask] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
        return bool(int(mask, 16) >> signal.SIGTERM - 1 & 1) or None

    if listening:
        assert httpx.get(process.url() + "/health").status_code == 200
    else:
        wait_for(handled, "a handler of SIGTERM")
    process.popen.send_signal(signal.SIGTERM)
    assert ended(process)
    assert ("listening" in process.log) == listening


STARTS = {
    "thread": ("2", "the system starts no more threads"),
    "bundle": ("2", "tiny-nli: head.onnx: "),
    "certificate": ("1", "HEEDFUL_TLS_CERT"),
    "port": ("2", "cannot listen on 127.0.0.1:PORT: Address already in use"),
}
"""The fault -> the number of processes, and the reason in the message."""
NO_THREADS = """
import threading
def start(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = start
"""
"""A limit of threads like that of `ulimit -u`, which does not bind root, the user of some test runs."""


@pytest.mark.parametrize("wrong", STARTS)
def test_what_cannot_start_is_one_line(
    start: Start, models: Path, tmp_path: Path, wrong: str
) -> None:
    processes, reason = STARTS[wrong]
    (tmp_path / "sitecustomize.py").write_text(NO_THREADS)
    (tmp_path / "cert.pem").write_text("none")
    broken = shutil.copytree(models, tmp_path / "bundles")
    (broken / "tiny-nli" / "head.onnx").write_bytes(b"no graph")
    address = ("127.0.0.1", 0)
    with socket.create_server(address, reuse_port=True) as other:  # as another service has it
        port = str(other.getsockname()[1])
        flags = {
            "bundle": {"models": str(broken)},
            "certificate": {"tls_cert": str(tmp_path / "cert.pem")},
            "port": {"port": port},
        }
        env = {"PYTHONPATH": str(tmp_path)} if wrong == "thread" else {}
        process = start(env, processes=processes, **flags.get(wrong, {}))
        assert process.exit_status() == 1
    [line] = [line for line in process.log.splitlines() if line.startswith("heedful: ")]
    assert reason.replace("PORT", port) in line
    assert "Traceback" not in process.log


def test_descriptors_that_are_closed_at_the_start_are_no_sockets(models: Path) -> None:
    """Else what ONNX Runtime writes to 2 would go into a connection or the shared counters."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flags = [f"--models={models}", "--processes=2", "--threads=1", f"--port={port}"]
    shell = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-m", "heedful", "serve"]
    with subprocess.Popen([*shell, *flags], cwd=ROOT) as popen:

        def answers() -> bool | None:
            assert popen.poll() is None
            return ready_at(f"http://127.0.0.1:{port}")

        wait_for(answers, "an answer")
        children = Path(f"/proc/{popen.pid}/task/{popen.pid}/children").read_text().split()
        descriptors = [
            str(Path(f"/proc/{pid}/fd/{number}").readlink())
            for pid in (popen.pid, *children)
            for number in range(3)
        ]
        popen.send_signal(signal.SIGTERM)
        assert popen.wait(PATIENCE) == 0
    assert descriptors == [os.devnull] * 9


def test_prometheus_scrapes_and_the_health_check_passes(
    start: Start, tmp_path: Path, healthcheck: list[str]
) -> None:
    process = start()
    url = process.ready()
    port, proxy = url.rpartition(":")[2], "http://127.0.0.1:9"  # where nothing listens
    env = {**os.environ, "HEEDFUL_PORT": port, "http_proxy": proxy}

    def run(command: list[str], **more: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False, **more)

    assert run(healthcheck, env=env).returncode == 0
    for _ in range(2):
        assert httpx.post(url + "/classify", json={"inputs": "kids"}).status_code == 200
    httpx.get(url + "/nowhere")
    page = httpx.get(url + "/metrics").content
    linted = run([tool("promtool"), "check", "metrics"], input=page)
    assert (linted.returncode, linted.stdout, linted.stderr) == (0, b"", b"")

    with prometheus(tmp_path, f"127.0.0.1:{port}") as query:
        assert wait_for(lambda: query('up{job="heedful"} == 1'), "a scrape") == 1
        requests = 'heedful_requests_total{{route="{}", model="{}", status="{}"}}'
        assert query(requests.format("/classify", "tiny-sst2", "200")) == 2
        assert query(requests.format("other", "none", "404")) == 1
        assert query('heedful_model_info{model="tiny-sst2", task="sst2"}') == 1
        assert wait_for(lambda: query("heedful:requests:rate5m"), "a recorded rate") >= 0
        assert query('count(ALERTS{alertname="HeedfulWrongProvider"})') is None
    process.popen.send_signal(signal.SIGINT)
    assert process.exit_status() == 0
    assert run(healthcheck, env=env).returncode != 0  # it is down


@contextlib.contextmanager
def prometheus(folder: Path, target: str) -> Iterator[Callable[[str], float | None]]:
    """A real Prometheus with the shipped configuration and rules, which scrapes the target often: it takes queries."""
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "200ms", "evaluation_interval": "200ms"}
    config["rule_files"] = [str(ROOT / "deploy/prometheus/rules.yml")]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [target]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        tool("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={address}",
    ]

    def query(expression: str) -> float | None:
        try:
            answer = httpx.get(f"http://{address}/api/v1/query", params={"query": expression})
        except httpx.TransportError:
            return None  # not listening yet
        series = answer.json()["data"]["result"] if answer.is_success else []
        return float(series[0]["value"][1]) if series else None

    with (folder / "prometheus.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield query
    finally:
        server.terminate()
        server.wait(PATIENCE)
