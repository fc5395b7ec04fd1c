"""What the plain install asks for on each platform, and what make asks of the system's Python."""

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
