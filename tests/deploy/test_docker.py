"""Checks of the image, the compose file and the install's requirements that need no Docker engine."""

import json
import re
import shlex
import tomllib
from typing import Any

import yaml
from packaging.requirements import Requirement

from heedful.app.process.server import FLUSH_TIMEOUT
from heedful.app.settings import Settings, environment_name
from tests.process import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
INSTRUCTIONS = [
    tuple(line.split(None, 1)) for line in DOCKERFILE.splitlines() if line and line[0] != "#"
]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
VARIABLES = {environment_name(field) for field in Settings.model_fields}


def rest(instruction: str) -> list[str]:
    return [line[1] for line in INSTRUCTIONS if line[0] == instruction]


COPIED = [
    source
    for arguments in rest("COPY")
    if not arguments.startswith("--from")
    for source in arguments.split()[:-1]
]
LOCKED, OWN, GPU = (
    shlex.split(run.rpartition("pip ")[2]) for run in rest("RUN") if "pip install" in run
)
"""Arguments of the builds' three pips; tests/test_serving_install.py installs with the first two."""
[SLIM] = (run for run in rest("RUN") if "strip" in run)
"""The command that makes the CPU's environment smaller, which that test runs too."""


def test_what_comes_from_others_is_named_by_its_hash() -> None:
    for arguments in (LOCKED, GPU):
        assert "--require-hashes" in arguments
        assert (ROOT / arguments[arguments.index("--requirement") + 1]).is_file()
    assert {"--no-index", "--no-deps", "--no-build-isolation"} < set(OWN)
    built = {"${PYTHON}", *(of.split()[-1] for of in rest("FROM"))}
    images = [image.partition("=")[2] for image in rest("ARG")]
    images += [of.split()[0] for of in rest("FROM") if of.split()[0] not in built]
    images += [of["image"] for of in COMPOSE["services"].values() if "image" in of]
    assert len(images) == 3
    for image in images:
        assert re.search(r"[\w/]+:[\w.-]+@sha256:[0-9a-f]{64}}?$", image), image


def test_the_process_is_not_root_and_is_the_service_as_it_is_set() -> None:
    names = [line[0] for line in INSTRUCTIONS]
    assert rest("USER")[-1] == "heedful"
    assert names.index("USER") < names.index("CMD")
    assert any("useradd" in run and "heedful" in run for run in rest("RUN"))
    assert json.loads(rest("CMD")[-1]) == ["heedful", "serve"]
    variables = dict(re.findall(r"(HEEDFUL_\w+)=(\S+)", " ".join(rest("ENV"))))
    assert set(variables) <= VARIABLES
    fields = {name.removeprefix("HEEDFUL_").lower(): text for name, text in variables.items()}
    settings = Settings.model_validate(fields, strict=False)
    assert settings.host == "0.0.0.0"
    assert str(settings.port) in rest("EXPOSE")
    [bundles] = [line.split()[-1] for line in rest("COPY") if line.startswith("bundles ")]
    assert str(settings.models) == bundles


def test_compose_gives_the_service_time_to_stop_and_opens_it_to_this_machine() -> None:
    service = COMPOSE["services"]["heedful"]
    assert set(service["environment"]) <= VARIABLES
    seconds = float(service["stop_grace_period"].removesuffix("s"))
    assert seconds >= Settings.model_fields["shutdown_timeout"].default + FLUSH_TIMEOUT
    for service in COMPOSE["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_there_is_one_onnx_runtime_that_pypi_has_on_each_platform() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(requirement) for requirement in project["dependencies"]]
    for system, machine, runtime in (
        ("linux", "x86_64", "onnxruntime-gpu"),
        ("linux", "aarch64", "onnxruntime"),
        ("darwin", "arm64", "onnxruntime"),
    ):
        where = {"sys_platform": system, "platform_machine": machine}
        names = [one.name for one in wanted if not one.marker or one.marker.evaluate(where)]
        assert [name for name in names if name.startswith("onnxruntime")] == [runtime]
