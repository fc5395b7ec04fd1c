"""The README is a first screen: short, run as printed, and its table's figures are the records'."""

import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import onnx
import pytest

from tests.docs.examples import Example, alike, examples, requests, run, table
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


def test_it_is_a_first_screen() -> None:
    lines = README.splitlines(keepends=True)
    assert len(lines) <= 120
    start = "".join(lines[:40])
    assert "](docs/page-evidence.png)" in start
    assert requests(start)[0].answer is not None


def test_every_command_is_run_or_excused() -> None:
    commands = [one.command for one in examples(README)]
    assert set(NOT_RUN) <= set(commands)
    assert [one.command.split()[0] for one in REQUESTS] == ["curl"] * 3
    assert [one.command.split()[0] for one in TOOLS] == ["heedful"]
    assert len(commands) == len(REQUESTS) + len(TOOLS) + len(NOT_RUN)
    assert README.count("```") == 2 * (len(commands) + len(REQUESTS) + len(PYTHON))


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


def test_the_table_has_every_bundle_and_the_figures_of_the_records() -> None:
    papers = tomllib.loads((ROOT / "results/goals.toml").read_text())["papers"]
    rows = {cells[0].strip("`"): cells[2:] for cells in table(README, "Models")}
    assert set(rows) == set(SHIPPED)
    for name, (size, score, paper, speed) in rows.items():
        card = json.loads((ROOT / f"bundles/{name}/card.json").read_text())
        held = sum(file.stat().st_size for file in (ROOT / "bundles" / name).iterdir())
        assert size == f"{held / 1e6:.0f} MB"
        scores = card["scores"]
        best = next((one for one in scores if one["split"] == "test"), scores[0])
        assert score == _figure(best["value"], best["metric"])
        known = [
            _figure(one["value"], one["metric"])
            for one in papers
            if one["encoder"] == card["encoder"]["name"]
            and card["task"] in one["tasks"]
            and (one["dataset"], one["metric"]) == (best["dataset"], best["metric"])
        ]
        assert [paper] == (known or [""])
        record = ROOT / f"results/transfer/{name}.json"
        if record.exists():
            rates = json.loads(record.read_text())
            ratio = rates["sentences_per_second"] / rates["minilm_sentences_per_second"]
            assert speed == f"{ratio:.1f}"
        else:
            assert speed == ""


def test_the_figures_beside_minilm_are_those_of_the_records_of_two_machines() -> None:
    of_machines = []
    for place in ("peers.json", "other_machine/peers.json"):
        record = json.loads((ROOT / "results/performance" / place).read_text())
        assert record["machine"]["cores"] == 2
        peers = [row for table in record["tables"] for row in table["rows"] if "peer" in row]
        [openvino] = [row["ratio"] for row in peers if "openvino" in row["peer"]]
        of_machines.append({**record["goals"], "over OpenVINO": openvino})
    for name, said in (
        ("over torch", "times as fast as MiniLM in sentence-transformers"),
        ("over ONNX Runtime", "times as fast as in ONNX Runtime (int8)"),
        ("over OpenVINO", "times as fast as in OpenVINO (bfloat16)"),
        ("single sentences with a parse", "times as fast as MiniLM behind Infinity"),
    ):
        low, high = (f"{one:.1f}" for one in sorted(of[name] for of in of_machines))
        assert f" {low} {said}" in README if low == high else f" {low} to {high} {said}" in README


def test_the_first_sentence_has_the_sizes_of_the_bundles() -> None:
    weights, megabytes = [], []
    for name in SHIPPED:
        card = json.loads((ROOT / f"bundles/{name}/card.json").read_text())
        head = ROOT / f"bundles/{name}/head.onnx"
        stored = onnx.load(head).graph.initializer if head.exists() else []
        weights.append(card["encoder"]["parameters"] + sum(math.prod(one.dims) for one in stored))
        files = (ROOT / "bundles" / name).iterdir()
        megabytes.append(sum(file.stat().st_size for file in files) / 1e6)
    start = README.partition("\n![")[0]
    assert f"at most {max(weights) / 1e6:.1f} million weights" in start
    assert f"{min(megabytes):.0f} to {max(megabytes):.0f} MB a model" in start


def _figure(value: float, metric: str) -> str:
    return f"{100 * value:.1f}" if metric == "accuracy" else f"{value:.3f}"
