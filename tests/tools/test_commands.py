"""The commands of `python -m tools`, the page of configurations, and the scripts that make the shipped models."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful.cli.main import app
from heedful.training import config, tasks
from tests.process import ROOT, output
from tests.shipped import SHIPPED
from tools.configuration import PAGE, page


def steps(script: str, folder: Path) -> list[list[str]]:
    """The commands of a script, with programs that only print them."""
    tools = 'if [ "$2" = tools ]; then shift 2; echo "$@"; fi'
    for name, line in (("heedful", 'echo "$@"'), ("python", tools)):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    command, path = ROOT / "scripts/models" / script, f"{folder}:{os.environ['PATH']}"
    said = output("sh", command, "--threads", "2", PATH=path, HOME=str(folder))
    return [line.split() for line in said.splitlines()]


@pytest.mark.parametrize("name", [*SHIPPED, "ms-san-minilm-nli"])
def test_a_models_script_trains_what_it_goes_on_from(name: str, tmp_path: Path) -> None:
    """And the options of its last step, an export, are the command's, which looks for the run after them."""
    made: set[Path] = set()
    commands = steps(name, tmp_path)
    for command, *arguments in commands:
        if command == "everyday":
            assert not arguments
            continue
        what, *options = arguments
        if command == "unpack":
            assert (ROOT / what).is_dir()
            made.add(Path("runs") / Path(what).name)
            continue
        if command == "average":
            assert {Path(what), Path(options[0])} <= made
            made.add(Path(options[-1]))
            continue
        if command == "export":
            assert Path(what) in made
            assert options[:2] == ["--out", f"bundles/{name}"]
            continue
        assert options[-2:] == ["--threads", "2"]
        if command == "label":
            assert tasks.get(what).kind == "embedding"
            continue
        assert command == "train"
        run = config.read(ROOT / what)
        tasks.get(run.task)
        needed = [run.init_from, *(run.teacher.runs if run.teacher else ())]
        assert all(one in made or (ROOT / one).is_dir() for one in needed if one)
        made.add(Path("runs") / Path(what).stem)
    command, _, *options = commands[-1]
    assert command == "export"
    found = CliRunner().invoke(app, [command, str(tmp_path / "none"), *options])
    assert "holds no run.json" in str(found.exception)


def test_the_page_is_up_to_date() -> None:
    """A field without a description is a KeyError."""
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools configuration"
