"""ONNX Runtime sends no telemetry: it neither starts the thread for that nor keeps events in the user's cache."""

import os
import subprocess
import sys
from pathlib import Path

SHOW = """
import os
import heedful.text.graph
print(len(os.listdir("/proc/self/task")))
"""


def test_importing_heedful_turns_it_off(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    for name in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == 1
    assert not list(tmp_path.rglob("onnxruntime.db"))
