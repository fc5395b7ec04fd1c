"""What the README says is so: its requests work as printed, its tables are the code's."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from heedful.app.main import ROUTERS
from heedful.app.metrics import Metrics
from heedful.app.settings import Settings, environment_name

README = Path("README.md").read_text(encoding="utf-8")
EXAMPLES = [b for b in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) if b.startswith("curl")]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


def first_cells(heading: str) -> list[str]:
    """The first cells of the table under a heading."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| `")]


def test_every_setting_is_in_its_table() -> None:
    assert first_cells("Settings") == [f"`{environment_name(f)}`" for f in Settings.model_fields]


def test_every_metric_is_in_its_table() -> None:
    named = {cell.strip("`") for cell in first_cells("Metrics")}
    served = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in Metrics().collect()
        if family.name.startswith("heedful_")
    }
    assert named == served


def test_every_route_is_in_its_table() -> None:
    served = {
        f"{method} {route.path}"
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    named = {name for cell in first_cells("Routes") for name in re.findall(r"`([^`]+)`", cell)}
    assert named == served | {"GET /docs", "GET /openapi.json"}


@pytest.mark.skipif(
    not shutil.which("curl") and "CI" not in os.environ, reason="curl is not installed"
)
@pytest.mark.parametrize("command", EXAMPLES, ids=range(len(EXAMPLES)))
def test_a_request_works_as_printed(command: str, shipped: str) -> None:
    here = command.replace("localhost:8000", shipped.removeprefix("http://"))
    done = subprocess.run(["sh", "-c", here], capture_output=True, text=True, check=True)
    assert "error" not in (answer := json.loads(done.stdout)), answer
