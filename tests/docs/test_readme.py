"""The README is a first screen: short, run as printed, and its table's figures are the records'."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.examples import Example, alike, examples, requests, run
from tests.process import ROOT
from tests.shipped import SHIPPED

README = (ROOT / "README.md").read_text(encoding="utf-8")
REQUESTS = requests(README)
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
NOT_RUN = {"make serve\n": "the fixture `shipped` is the service that it starts"}
TOOLS = [
    one
    for one in examples(README)
    if not one.command.startswith("curl") and one.command not in NOT_RUN
]
NO_CURL = pytest.mark.skipif(
    not shutil.which("curl") and "CI" not in os.environ, reason="curl is not installed"
)


def test_the_python_runs_and_prints_similarities() -> None:
    (code,) = PYTHON
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rows = [[float(one) for one in line.strip(" []").split()] for line in done.stdout.splitlines()]
    assert rows == [[1, rows[0][1]], [rows[0][1], 1]]
    assert 0.3 < rows[0][1] < 0.7


@NO_CURL
@pytest.mark.parametrize("example", REQUESTS, ids=range(len(REQUESTS)))
def test_a_request_is_answered_as_shown(example: Example, shipped: str) -> None:
    answer = json.loads(run(example.command, url=shipped))
    assert example.answer is not None
    assert alike(answer, example.answer), answer


@pytest.mark.slow
@pytest.mark.parametrize("example", TOOLS, ids=range(len(TOOLS)))
def test_a_command_makes_what_it_names(example: Example, tmp_path: Path) -> None:
    (tmp_path / "bundles").mkdir()
    for bundle in (ROOT / "bundles").iterdir():
        (tmp_path / "bundles" / bundle.name).symlink_to(bundle)
    with (tmp_path / "reviews.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("text", "stars"))
        for number in range(20):
            rows.writerow((f"a lovely film, {number} times", 5))
            rows.writerow((f"a dull film, {number} times", 1))
    run(example.command, folder=tmp_path)
    made = re.findall(r"--(?:to|out) (\S+)", example.command)
    assert len(made) == example.command.count("\n")
    for name in made:
        assert (tmp_path / name).exists()


def test_the_table_has_every_bundle_and_marks_the_speed_of_another_version() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|(?:[^|]*\|){4}([^|]*)\|$", README, re.M)
    speeds = {name: speed.strip() for name, speed in rows}
    assert set(speeds) == set(SHIPPED)
    for name, speed in speeds.items():
        if speed:
            record = json.loads((ROOT / f"results/transfer/{name}.json").read_text())
            card = json.loads((ROOT / f"bundles/{name}/card.json").read_text())
            assert (record.get("version") == card["version"]) != speed.endswith("†"), name
