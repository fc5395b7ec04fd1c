"""The two pages of results say what the cards and the records of this repository hold; records that do not count."""

import json
import math
import re
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from heedful.runtime.bundles.bundle import read
from heedful.training.errors import ConfigError
from tests.process import ROOT
from tests.shipped import BUNDLES, SHIPPED
from tests.writing import write
from tools import bundle_records, paper_tables, reproduced
from tools.report import command

RESULTS = ROOT / "results"
TABLE = """
title = "Toys"
seeds = [1]
rows = [{ name = "Whole", config = "configs/ms-san-trec-alone.toml" }]
"""


def shown(value: float, metric: str) -> str:
    return f"{100 * value:.1f}" if metric == "accuracy" else f"{value:.3f}"


def test_the_pages_say_what_the_cards_and_the_records_hold(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    command(tmp_path, BUNDLES, RESULTS)
    scores, how = ((tmp_path / page).read_text() for page in ("results.md", "notes/results.md"))
    for name in SHIPPED:
        for score in read(BUNDLES / name).card.scores:
            error = 100 * math.sqrt(max(0, score.value * (1 - score.value)) / score.rows)
            cells = (score.dataset, score.split, score.metric, shown(score.value, score.metric))
            row = re.escape(f" | {' | '.join(cells)} | ")
            (line,) = re.findall(rf"^\| `{name}` .*{row}.*$", scores, re.MULTILINE)
            assert (f" | {error:.2f} | " in line) == (score.metric == "accuracy")
    for folder in (RESULTS / "runs").iterdir():
        section = how.partition(f"`python -m tools reproduce {folder.name}`")[2]
        section = section.partition("\n###")[0]
        rows = defaultdict(list)
        for file in folder.glob("*.json"):
            record = json.loads(file.read_text())
            rows[record["row"]].append(record["scores"][0])
        for row, measured in rows.items():
            values, metric = [one["value"] for one in measured], measured[0]["metric"]
            cell = shown(statistics.mean(values), metric)
            if len(values) > 1:
                cell += f" ± {shown(statistics.stdev(values), metric)}"
            assert re.search(rf"^\| {re.escape(row)} \|.* \| {cell} \| ", section, re.MULTILINE)
    for file in RESULTS.glob("suite/*.json"):
        record = json.loads(file.read_text())
        first = shown(record["figures"][0]["value"], record["figures"][0]["metric"])
        assert re.search(rf"^\| `{record['model']}` \| \w* \| {first} \|", how, re.MULTILINE)


def test_a_record_of_a_changed_source_stands_with_its_reason_alone(tmp_path: Path) -> None:
    write(tmp_path, {"tables/toys.toml": TABLE})
    ((name, config),) = paper_tables.read(tmp_path / "tables/toys.toml").rows[0].runs((1,)).items()
    record = {
        "config": config.model_dump(mode="json"),
        "commit": "ba9876543210-dirty",
        "scores": [{"metric": "accuracy", "value": 0.9, "rows": 500}],
        "data": [{"name": "trec", "rows": 4906, "note": "whole"}],
    }
    write(tmp_path, {f"runs/toys/{name}.json": json.dumps(record)})

    def page() -> str:
        table = paper_tables.read(tmp_path / "tables" / "toys.toml")
        return "\n".join(reproduced.table_lines("toys", table, tmp_path))

    with pytest.raises(ConfigError, match=r"toys: Whole: a record's source had changes that no"):
        page()
    changed = TABLE.replace(" }]", ', changed = "a month of a core" }]')
    write(tmp_path, {"tables/toys.toml": changed})
    assert "| 90.0 | 1.34 |  |  | 1 | ba9876543210 with changes |" in page()
    assert "- Whole, with changes: a month of a core." in page()


def test_a_record_of_another_version_of_its_bundle_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"toy/card.json": json.dumps({"version": "1" * 12})})
    cell = bundle_records.version({"model": "toy"}, tmp_path)
    assert cell == "not recorded: perhaps an earlier one"
    with pytest.raises(ConfigError, match=r"toy measured version 2{12}, .*toy is 1{12}"):
        bundle_records.version({"model": "toy", "version": "2" * 12}, tmp_path)
