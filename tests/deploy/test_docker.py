"""Checks of the image and the compose file that need no Docker engine."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from heedful.app.process.server import FLUSH_TIMEOUT
from heedful.app.settings import Settings, environment_name

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
INSTRUCTIONS = [
    tuple(line.split(None, 1)) for line in DOCKERFILE.splitlines() if line and line[0] != "#"
]


def rest(instruction: str) -> list[str]:
    return [found[1] for found in INSTRUCTIONS if found[0] == instruction]


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


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


def test_what_comes_from_an_index_has_a_hash() -> None:
    for arguments in (LOCKED, GPU):
        assert "--require-hashes" in arguments
        assert (ROOT / arguments[arguments.index("--requirement") + 1]).is_file()
    assert {"--no-index", "--no-deps", "--no-build-isolation"} < set(OWN)


def test_images_of_others_are_named_by_digest(compose: dict[str, Any]) -> None:
    built = {"${PYTHON}", *(of.split()[-1] for of in rest("FROM"))}
    images = [image.partition("=")[2] for image in rest("ARG")]
    images += [of.split()[0] for of in rest("FROM") if of.split()[0] not in built]
    images += [of["image"] for of in compose["services"].values() if "image" in of]
    assert len(images) == 3
    for image in images:
        assert re.search(r"[\w/]+:[\w.-]+@sha256:[0-9a-f]{64}}?$", image), image


def test_the_process_is_not_root_and_is_the_service() -> None:
    names = [found[0] for found in INSTRUCTIONS]
    assert rest("USER")[-1] == "heedful"
    assert names.index("USER") < names.index("CMD")
    assert any("useradd" in run and "heedful" in run for run in rest("RUN"))
    assert json.loads(rest("CMD")[-1]) == ["heedful", "serve"]


def test_the_variables_are_settings() -> None:
    known = {environment_name(field) for field in Settings.model_fields}
    set_here = dict(re.findall(r"(HEEDFUL_\w+)=(\S+)", " ".join(rest("ENV"))))
    assert set(set_here) <= known
    settings = Settings(
        **{name.removeprefix("HEEDFUL_").lower(): value for name, value in set_here.items()}
    )
    assert settings.host == "0.0.0.0"
    assert str(settings.port) in rest("EXPOSE")
    [bundles] = [line.split()[-1] for line in rest("COPY") if line.startswith("bundles ")]
    assert str(settings.models) == bundles


def test_compose_builds_the_service_and_gives_it_time_to_stop(compose: dict[str, Any]) -> None:
    service = compose["services"]["heedful"]
    assert (ROOT / service["build"] / "Dockerfile").is_file()
    known = {environment_name(field) for field in Settings.model_fields}
    assert set(service["environment"]) <= known
    seconds = float(service["stop_grace_period"].removesuffix("s"))
    assert seconds >= Settings.model_fields["shutdown_timeout"].default + FLUSH_TIMEOUT


def test_everything_is_open_to_this_machine_only(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
