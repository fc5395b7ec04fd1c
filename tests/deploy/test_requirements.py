"""What the plain install asks for on each platform, and what make asks of the system's Python."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.process import ROOT


@pytest.mark.parametrize(
    ("system", "machine", "runtime"),
    [
        ("linux", "x86_64", "onnxruntime-gpu"),
        ("linux", "aarch64", "onnxruntime"),
        ("darwin", "arm64", "onnxruntime"),
    ],
)
def test_there_is_one_onnx_runtime_that_pypi_has_there(
    system: str, machine: str, runtime: str
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(one) for one in project["dependencies"]]
    where = {"sys_platform": system, "platform_machine": machine}
    found = [one.name for one in wanted if not one.marker or one.marker.evaluate(where)]
    assert [name for name in found if name.startswith("onnxruntime")] == [runtime]


def test_constraints_pin_both_to_one_version() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines)
    assert pinned["onnxruntime"] == pinned["onnxruntime-gpu"]


def test_make_asks_the_system_s_python_for_environments_alone() -> None:
    """Debian's has no pip; an environment has."""
    lines = re.findall(
        r"^\t(.*\$\(PYTHON\).*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE
    )
    assert len(lines) > 1
    assert [line for line in lines if not line.startswith("$(PYTHON) -m venv ")] == []


def test_git_passes_over_what_make_builds() -> None:
    """Both wheels have 85 MB."""
    assert {"build/", "dist/"} <= set((ROOT / ".gitignore").read_text().splitlines())
