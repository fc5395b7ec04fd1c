"""The scripts that make the shipped models: each step can be done once those before it are."""

import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful.cli import main
from heedful.training import config, tasks
from tests.shipped import SHIPPED

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts/models"


def steps(script: str, folder: Path) -> list[list[str]]:
    """The commands of a script, with programs that only print them."""
    tools = 'if [ "$2" = tools ]; then shift 2; echo "$@"; fi'
    for name, line in (("heedful", 'echo "$@"'), ("python", tools)):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)}
    said = subprocess.run(
        ["sh", str(SCRIPTS / script), "--threads", "2"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split() for line in said.stdout.splitlines()]


@pytest.mark.parametrize("name", [*SHIPPED, "ms-san-minilm-nli"])
def test_a_models_script_trains_what_it_goes_on_from(name: str, tmp_path: Path) -> None:
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
    assert commands[-1][0] == "export"


def test_the_scripts_options_are_the_commands(tmp_path: Path) -> None:
    """`export` parses its options before it looks for the run."""
    for name in (*SHIPPED, "ms-san-minilm-nli"):
        command, _, *options = steps(name, tmp_path)[-1]
        found = CliRunner().invoke(main.app, [command, str(tmp_path / "none"), *options])
        assert "holds no run.json" in str(found.exception)
