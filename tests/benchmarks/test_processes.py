"""A server's process is waited for, watched, and ended with all that it has started."""

import sys
import time
from pathlib import Path

import pytest

from benchmarks.processes import ServerFailed, free_port, serving

FORKING = """
import http.server, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind="127.0.0.1")
"""


def test_all_of_a_server_ends() -> None:
    port = free_port()
    command = [sys.executable, "-c", FORKING, str(port)]
    with serving(command, f"http://127.0.0.1:{port}", "/README.md") as server:
        tree = server.tree()
        assert len(tree) == 2
        assert server.ready_seconds > 0
        assert server.memory() > 5  # two interpreters
        assert server.processor_seconds() > 0
    until = time.monotonic() + 10
    while any(_runs(pid) for pid in tree) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(_runs(pid) for pid in tree)


def test_a_server_that_ends_is_told_with_its_last_words() -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such model')"]
    with (
        pytest.raises(ServerFailed, match="no such model"),
        serving(command, f"http://127.0.0.1:{free_port()}", "/"),
    ):
        pass


def _runs(pid: int) -> bool:
    """Whether it is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
