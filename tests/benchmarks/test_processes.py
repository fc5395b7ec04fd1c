"""A server's process is waited for, watched, and ended with all that it has started."""

import sys
from pathlib import Path

from benchmarks.processes import free_port, serving
from tests.process import wait_for

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
    running = [Path(f"/proc/{pid}/exe") for pid in tree]
    wait_for(lambda: not any(path.exists() for path in running) or None, "the end of all")
