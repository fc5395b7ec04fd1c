"""heedful serve, up to the service itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys, types

def serve(settings):
    import numpy, threadpoolctl
    found = threadpoolctl.threadpool_info()
    print(json.dumps([one["num_threads"] for one in found if one["user_api"] == "blas"]))

serving = types.ModuleType("heedful.app.process.serve")
serving.serve = serve
sys.modules[serving.__name__] = serving
sys.argv = ["heedful", "serve"]
from heedful.cli.main import main
main()
"""


@pytest.mark.parametrize(("setting", "threads"), [("", 1), ("2", 2)])
def test_blas_has_one_thread_unless_the_environment_says_more(
    setting: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if setting:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", setting)
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    # OpenBLAS starts no more than there are cores.
    assert json.loads(found.stdout) == [min(threads, len(os.sched_getaffinity(0)))]


def test_a_folder_that_is_not_there_is_said_before_it_listens(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "heedful", "serve", "--port", "0", "--models", "nowhere"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.startswith("heedful: there is no folder nowhere: name one that holds bun")
    assert "pip install dist/heedful_bundles" in found.stderr
    assert found.stdout == ""
