"""A real process: start-up, signals, faults, and Prometheus."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from heedful.app.process.listening import listen
from tests.app.conftest import Start
from tests.process import PATIENCE, ROOT, tool, wait_for

BODY = {"inputs": ["a", "b"], "model": "tiny-nli"}


@contextlib.contextmanager
def in_flight(url: str) -> Iterator[http.client.HTTPConnection]:
    """A request that fills a queue of two, in a service whose models are held."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/embed", json.dumps(BODY), headers)
    # It was sent first and accepted first: the next one finds the queue full.
    assert httpx.post(url + "/embed", json=BODY, timeout=PATIENCE).status_code == 429
    yield connection
    connection.close()


def test_sigterm_answers_requests_in_flight_and_refuses_new_ones(start: Start) -> None:
    process = start(max_queue="2", max_batch_inputs="2", idle_timeout="200")
    url = process.ready()
    idle = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
    idle.request("GET", "/health")
    assert idle.getresponse().read()
    assert idle.sock
    with process.held(), in_flight(url) as first, contextlib.closing(idle):
        process.popen.send_signal(signal.SIGTERM)
        wait_for(lambda: httpx.get(url + "/ready").status_code == 503 or None, "the end to begin")
        assert idle.sock.recv(1) == b""  # closed: its client asks elsewhere
        refused = httpx.post(url + "/embed", json=BODY)
        assert refused.status_code == 503
        assert refused.headers["Connection"] == "close"
        assert refused.json()["error"]["code"] == "unavailable"
        assert httpx.get(url + "/health").status_code == 200
        process.release()
        answer = first.getresponse()
        assert answer.status == 200
        assert answer.headers["Connection"] == "close"
        assert len(json.loads(answer.read())) == 2
    assert process.exit_status() == 0
    assert "Traceback" not in process.log


def test_sigterm_ends_ndjson_between_two_lines(start: Start) -> None:
    process = start()
    address = process.ready().removeprefix("http://")
    body = b'{"inputs": "kids"}'
    slow, lines = (http.client.HTTPConnection(address, timeout=PATIENCE) for _ in range(2))
    with contextlib.closing(slow), contextlib.closing(lines):
        slow.putrequest("POST", "/embed")
        slow.putheader("Content-Type", "application/json")
        slow.putheader("Content-Length", str(len(body)))
        slow.endheaders(body[:-5])
        lines.putrequest("POST", "/embed")
        lines.putheader("Content-Type", "application/x-ndjson")
        lines.putheader("Transfer-Encoding", "chunked")
        lines.endheaders(b'12\r\n{"inputs": "kids"}\r\n1\r\n\n\r\n')
        answered = lines.getresponse()
        assert "answer" in json.loads(answered.readline())
        process.popen.send_signal(signal.SIGTERM)
        url = f"http://{address}/ready"
        wait_for(lambda: httpx.get(url).status_code == 503 or None, "the end to begin")
        lines.send(b'12\r\n{"inputs": "kids"}\r\n1\r\n\n\r\n')
        refused = json.loads(answered.readline())
        assert (refused["line"], refused["error"]["code"]) == (1, "unavailable")
        assert answered.readline() == b""  # ended as it should, though its client would go on
        for _ in range(5):
            assert httpx.get(url).status_code == 503
        slow.send(body[-5:])
        assert slow.getresponse().status in (200, 503)  # it is answered, not cut off
    assert process.exit_status() == 0
    assert "Traceback" not in process.log


def test_the_shutdown_timeout_bounds_the_wait(start: Start) -> None:
    process = start(shutdown_timeout="0.2", max_queue="2", max_batch_inputs="2")
    url = process.ready()
    with process.held(), in_flight(url) as first:
        process.popen.send_signal(signal.SIGTERM)
        answer = first.getresponse()
        assert (answer.status, json.loads(answer.read())["error"]["code"]) == (503, "unavailable")
    assert process.exit_status() == 0


def test_sigterm_while_loading_exits_0(start: Start) -> None:
    process = start(shutdown_timeout="20")
    assert httpx.get(process.url() + "/health").status_code == 200
    process.popen.send_signal(signal.SIGTERM)
    assert process.exit_status() == 0
    assert "Traceback" not in process.log


def test_sigterm_before_it_listens_exits_0(start: Start) -> None:
    """Without a handler the first process of a container would not get the signal."""
    process = start()

    def handled() -> bool | None:
        status = Path(f"/proc/{process.popen.pid}/status").read_text()
        [mask] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
        return bool(int(mask, 16) >> signal.SIGTERM - 1 & 1) or None

    wait_for(handled, "a handler of SIGTERM")
    process.popen.send_signal(signal.SIGTERM)
    assert process.exit_status() == 0
    assert "listening" not in process.log


def test_an_ipv6_address_is_logged(start: Start) -> None:
    process = start(host="::1", processes="2")
    assert process.url().startswith("http://[::1]:")
    assert httpx.get(process.ready() + "/health", timeout=PATIENCE).json() == {"status": "ok"}


STARTS = {
    "thread": ("2", "the system starts no more threads"),
    "thread of one": ("1", "the system starts no more threads"),
    "bundle": ("2", "tiny-nli: head.onnx: "),
    "alias": ("2", "there is no model nothing"),
    "certificate": ("1", "HEEDFUL_TLS_CERT"),
    "port": ("2", "cannot listen on 127.0.0.1:PORT: Address already in use"),
}
"""What is wrong -> how many processes, and what is said."""
NO_THREADS = """
import threading
def start(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = start
"""
"""As below `ulimit -u`, which does not bind root, as whom tests may run."""


@pytest.mark.parametrize("wrong", STARTS)
def test_what_cannot_start_is_one_line(
    start: Start, models: Path, tmp_path: Path, wrong: str
) -> None:
    processes, said = STARTS[wrong]
    flags, env = {"processes": processes}, {}
    with socket.create_server(
        ("127.0.0.1", 0), reuse_port=True
    ) as taken:  # as another service has it
        port = str(taken.getsockname()[1])
        if wrong.startswith("thread"):
            (tmp_path / "sitecustomize.py").write_text(NO_THREADS)
            env = {"PYTHONPATH": str(tmp_path)}
        elif wrong == "bundle":
            broken = shutil.copytree(models, tmp_path / "bundles")
            (broken / "tiny-nli" / "head.onnx").write_bytes(b"no graph")
            flags["models"] = str(broken)
        elif wrong == "alias":
            flags["aliases"] = "other=nothing"
        elif wrong == "certificate":
            (tmp_path / "cert.pem").write_text("none")
            flags["tls_cert"] = str(tmp_path / "cert.pem")
        else:
            flags["port"] = port
        process = start(env, **flags)
        assert process.exit_status() == 1
    [line] = [line for line in process.log.splitlines() if line.startswith("heedful: ")]
    assert said.replace("PORT", port) in line
    assert "Traceback" not in process.log


def test_all_addresses_of_ipv6_are_those_of_ipv4_too() -> None:
    with listen("::", 0) as listener, socket.socket() as client:
        client.connect(("127.0.0.1", listener.getsockname()[1]))


def test_descriptors_that_are_closed_at_the_start_are_no_sockets(models: Path) -> None:
    """Else what ONNX Runtime writes to 2 would go into a connection or the shared counters."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flags = [f"--models={models}", "--processes=2", "--threads=1", f"--port={port}"]
    shell = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    with subprocess.Popen(
        [*shell, sys.executable, "-m", "heedful", "serve", *flags], cwd=ROOT
    ) as popen:
        wait_for(lambda: answers(port, popen), "an answer")
        children = Path(f"/proc/{popen.pid}/task/{popen.pid}/children").read_text().split()
        held = [
            str(Path(f"/proc/{pid}/fd/{number}").readlink())
            for pid in (popen.pid, *children)
            for number in range(3)
        ]
        popen.send_signal(signal.SIGTERM)
        assert popen.wait(PATIENCE) == 0
    assert held == [os.devnull] * 9


def answers(port: int, popen: subprocess.Popen[bytes]) -> bool | None:
    """Whether the service is ready."""
    assert popen.poll() is None
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/ready", timeout=PATIENCE).is_success or None
    return None


def test_a_log_that_nobody_reads_stops_nothing(models: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flags = [f"--models={models}", "--processes=2", "--threads=1", f"--port={port}"]
    flags += ["--log-level=debug", "--shutdown-timeout=1"]  # probes have lines then
    command = [sys.executable, "-m", "heedful", "serve", *flags]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT) as popen,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(popen.kill)  # a service that is stuck would be waited for
        wait_for(lambda: answers(port, popen), "an answer")
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            for _ in range(1500):  # some 200 kB of lines; a pipe holds 64
                assert client.get("/health").status_code == 200
        popen.send_signal(signal.SIGTERM)
        assert popen.wait(PATIENCE) == 0


def test_prometheus_scrapes_and_the_health_check_passes(
    start: Start, tmp_path: Path, healthcheck: list[str]
) -> None:
    prometheus, promtool = tool("prometheus"), tool("promtool")
    process = start()
    url = process.ready()
    port = url.rpartition(":")[2]
    env = {
        **os.environ,
        "HEEDFUL_PORT": port,
        "http_proxy": "http://127.0.0.1:9",
    }  # where nothing listens
    assert subprocess.run(healthcheck, env=env, timeout=PATIENCE, check=False).returncode == 0
    for _ in range(2):
        assert httpx.post(url + "/classify", json={"inputs": "kids"}).status_code == 200
    httpx.get(url + "/nowhere")
    page = httpx.get(url + "/metrics").content
    linted = subprocess.run(
        [promtool, "check", "metrics"],
        input=page,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (linted.returncode, linted.stdout, linted.stderr) == (0, b"", b"")

    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "200ms", "evaluation_interval": "200ms"}
    config["rule_files"] = [str(ROOT / "deploy/prometheus/rules.yml")]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{port}"]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (tmp_path / "prometheus.log").open("wb") as log:
        watcher = subprocess.Popen(
            [
                prometheus,
                f"--config.file={tmp_path / 'prometheus.yml'}",
                f"--storage.tsdb.path={tmp_path / 'tsdb'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:

        def answered(query: str) -> float | None:
            try:
                found = httpx.get(f"http://{address}/api/v1/query", params={"query": query})
            except httpx.TransportError:
                return None  # not listening yet
            if not found.is_success:
                return None
            series = found.json()["data"]["result"]
            return float(series[0]["value"][1]) if series else None

        assert wait_for(lambda: answered('up{job="heedful"} == 1'), "a scrape") == 1
        requests = 'heedful_requests_total{{route="{}", model="{}", status="{}"}}'
        assert answered(requests.format("/classify", "tiny-sst2", "200")) == 2
        assert answered(requests.format("other", "none", "404")) == 1
        assert answered('heedful_model_info{model="tiny-sst2", task="sst2"}') == 1
        assert wait_for(lambda: answered("heedful:requests:rate5m"), "a recorded rate") >= 0
        assert answered('count(ALERTS{alertname="HeedfulWrongProvider"})') is None
    finally:
        watcher.terminate()
        watcher.wait(PATIENCE)
    # Down: the health check must say so.
    process.popen.send_signal(signal.SIGINT)
    assert process.exit_status() == 0
    down = subprocess.run(healthcheck, env=env, capture_output=True, timeout=PATIENCE, check=False)
    assert down.returncode != 0
