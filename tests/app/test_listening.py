"""The service listens on a file, a passed socket or an address; it refuses other values."""

import os
import signal
import socket
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest

from heedful.app.process.listening import listen, remove_file
from heedful.runtime.errors import StartupError
from tests.app.conftest import Start
from tests.process import HOLDING, PATIENCE, Process, wait_for


def test_a_file_is_one_socket_for_all_processes(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:  # as a service that was killed leaves it
        left.bind(str(file))
    process = start(host=f"unix:{file}", processes="2")

    def ask(method: str, path: str, **body: str) -> httpx.Response:
        transport = httpx.HTTPTransport(uds=str(file))
        with httpx.Client(transport=transport, timeout=PATIENCE) as client:
            return client.request(method, f"http://heedful{path}", json=body or None)

    def answers() -> bool | None:
        assert not process.ended(), process.log
        try:
            return ask("GET", "/ready").is_success or None
        except httpx.TransportError:
            return None

    def ended(pid: int) -> bool | None:
        return pid not in process.children() or None

    wait_for(lambda: f"listening on unix:{file}" in process.log or None, "a listening service")
    wait_for(answers, "an answer")
    for killed in process.servers():
        os.kill(killed, signal.SIGKILL)
        wait_for(partial(ended, killed), "its end")
        wait_for(answers, "an answer of another process, or of its replacement")
    assert ask("POST", "/classify", inputs="kids").status_code == 200
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
    try:
        assert httpx.get(process.ready() + "/health", timeout=PATIENCE).json() == {"status": "ok"}
    finally:
        process.close()


def test_addresses_of_ipv6(start: Start) -> None:
    """They may have brackets; "::" is IPv4 too."""
    process = start(host="::1", processes="2")
    assert process.url().startswith("http://[::1]:")
    assert httpx.get(process.ready() + "/health", timeout=PATIENCE).json() == {"status": "ok"}
    with listen("[::1]", 0) as listener:
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
