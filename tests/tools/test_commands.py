"""`python -m tools`: its list of commands."""

import sys
from pathlib import Path

import pytest

from tools.__main__ import COMMANDS, main


def test_no_command_and_an_error_are_lines_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["tools", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return str(end.value.code)

    listed = refused()
    assert all(f"python -m tools {name} " in listed for name in COMMANDS)
    said = refused("reproduce", "--all", "--results", str(tmp_path))
    assert said.startswith(f"heedful: there is no {tmp_path}/papers.toml: work in a checkout")
    assert "\n" not in said
