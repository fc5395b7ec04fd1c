"""`python -m tools`: its list of commands."""

import subprocess
import sys
from pathlib import Path

from tests.process import ROOT
from tools.__main__ import COMMANDS


def test_no_command_and_an_error_are_lines_without_a_traceback(tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        run = subprocess.run(
            [sys.executable, "-m", "tools", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 1
        return run.stderr

    listed = refused()
    assert all(f"python -m tools {name} " in listed for name in COMMANDS)
    said = refused("reproduce", "--all", "--results", str(tmp_path))
    assert said.startswith(f"heedful: there is no {tmp_path}/papers.toml: work in a checkout")
    assert said.count("\n") == 1
