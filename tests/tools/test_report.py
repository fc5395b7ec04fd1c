"""Tables, their records, and the two pages that are written from them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from heedful.training.errors import ConfigError
from tests.process import ROOT
from tests.training.test_tasks import write
from tools import bundle_records, paper_tables, reproduced
from tools.report import notes, report

BUNDLES = Path("bundles")
TABLE = """
title = "Toys"
full = "Whole"
seeds = [1, 2]
deviations = ["batches of 32, the paper has 64"]

[[rows]]
name = "Whole"
config = "configs/ms-san-trec-alone.toml"
paper = 0.942
paper_weights = "1.8m"
not_run = "no time"

[[rows]]
name = "No tree, no words"
config = "configs/ms-san-trec-alone.toml"
set = { alpha = 0.5, encoder = { config = { dependency = false } } }
"""
SUMMARY = """
notes = ["One of them was trained otherwise"]
repeated = [{ split = "SST", times = 2, why = "a mistake" }]
summary = [
    { name = "A", bundle = "ms-san-sst2", score = { dataset = "sst", split = "test", metric = "accuracy" } },
    { name = "B", table = "toys", row = "Whole" },
]
papers = [
    { encoder = "ms-san", tasks = ["sst2"], dataset = "sst", metric = "accuracy", value = 0.886 },
]
"""
TRANSFER = {
    **{"model": "toy", "version": "1" * 12, "dimension": 3},
    **{"accuracy": {"cr": 0.8}, "similarity": {"stsb dev spearman": 0.7}},
    **{"sentences_per_second": 200.0, "minilm_sentences_per_second": 100.0},
}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with TABLE."""
    write(tmp_path, {"tables/toys.toml": TABLE})
    return tmp_path


def record(results: Path, row: int, seed: int, value: float, **fields: Any) -> None:
    """Write the record of a run of TABLE's first or second row, tested on 500 questions."""
    table = paper_tables.read(results / "tables" / "toys.toml")
    ((name, config),) = table.rows[row].runs((seed,)).items()
    written = {
        "scores": [{"metric": "accuracy", "value": value, "rows": 500}],
        "data": [{"name": "trec", "rows": 4906, "note": "whole"}],
        "commit": "0123456789ab",
        **fields,
        "config": config.model_dump(mode="json") | fields.get("config", {}),
    }
    write(results, {f"runs/toys/{name}.json": json.dumps(written)})


LOG = [{"epoch": 1}, *({"epoch": i, "processor_seconds": 3.0 * i} for i in (2, 3, 30))]


def test_a_table_and_the_list_below_it_say_what_the_records_hold(results: Path) -> None:
    def page() -> str:
        table = paper_tables.read(results / "tables" / "toys.toml")
        return "\n".join(reproduced.table_lines("toys", table, results))

    text = page()
    assert "| Whole |  | 1.8m | not run |  | 94.2 |  | 0 |  |" in text
    assert "- Not as in the paper: batches of 32, the paper has 64." in text
    assert "- Whole: not run: no time." in text

    # Weights include the head's; sqrt(0.9 * 0.1 / 500 + 0.85 * 0.15 / 500) = 0.0209.
    record(results, 0, 1, 0.9, log=LOG, train={"metric": "accuracy", "value": 0.98})
    record(results, 1, 1, 0.85)
    text = page()
    row = "| Whole | 1,264,206 | 1.8m | 90.0 | 1.34 | 94.2 | -4.2 | 1 | 0123456789ab |"
    assert row in text
    assert "- Trained on trec, 4,906 rows: whole." in text
    assert "- On at most 10,000 rows of train: Whole 98.0." in text
    assert "- Processor seconds of training an epoch, one thread: Whole 9." in text
    assert "errors of it): No tree, no words 5.0 (4.2)." in text

    # The difference to the paper is of the mean. The second run is of a changed source.
    taught = {"teacher": {"run": "runs/wise", "weight": 0.7}}
    on_a_gpu = {"device": "cuda", "optimiser": {"precision": "float32"}, **taught}
    record(results, 0, 1, 0.9, log=LOG, config=on_a_gpu)
    record(results, 0, 2, 0.92, commit="ba9876543210-dirty")
    with pytest.raises(ConfigError, match=r"toys: Whole: a record's source had changes that no"):
        page()
    reason = 'not_run = "no time"\nchanged = "a month of a core"'
    write(results, {"tables/toys.toml": TABLE.replace('not_run = "no time"', reason)})
    text = page()
    assert "| 91.0 ± 1.4 | 1.28 | 94.2 | -3.2 | 2 | 0123456789ab, ba9876543210 with ch" in text
    assert "- Whole, with changes: a month of a core." in text
    assert "**Whole** is taught by `wise`, over all-MiniLM-L6-v2: 0.7 of each target is" in text
    assert "- Precision of the products, by run: Whole float32 and bfloat16." in text
    assert "Processor seconds of training" not in text  # a GPU is not one thread


def test_the_pages_put_shipped_models_and_records_next_to_the_papers(results: Path) -> None:
    counts = {"rows": 1000, "test_seen": 3, "letters_seen": 4, "train_in_test": 5}
    overlaps = {"tasks": {"toys": counts}, "sst_in_subj": {"train": 1, "test": 2}}
    items = 'papers = [{ paper = "P", items = [{ item = "Table 1", tables = ["toys"] }] }]\n'
    suite = {"model": "toy", "version": "1" * 12, "split": "dev"}
    suite |= {"figures": [{"dataset": "A", "metric": "accuracy", "value": 0.9, "rows": 9}]}
    files = {"summary.toml": SUMMARY, "papers.toml": items, "overlaps.json": json.dumps(overlaps)}
    files |= {"transfer/toy.json": json.dumps(TRANSFER), "suite/toy.json": json.dumps(suite)}
    write(results, files)
    bundles = results / "bundles"
    shutil.copytree(BUNDLES / "ms-san-sst2", bundles / "ms-san-sst2")
    card = bundles / "ms-san-sst2" / "card.json"
    fields = json.loads(card.read_text())
    score = {"dataset": "sst", "split": "test", "metric": "accuracy", "value": 0.9, "rows": 900}
    fields["scores"] = [score]
    fields["training"] |= {"commit": "0123456789ab-dirty", "teacher": "runs/wise", "seed": 7}
    card.write_text(json.dumps(fields))
    record(results, 0, 1, 0.95)
    text = report(bundles, results)
    assert "| A | `ms-san-sst2`, taught by `wise` | 90.0 | 88.6 | +1.4 |" in text
    assert "| B | Whole (`toys`) | 95.0 | 94.2 | +0.8 |" in text
    assert "| `ms-san-sst2` | `wise` | 0123456789ab with changes | sst | test | accur" in text
    assert "| 90.0 | 1.00 | 88.6 | 900 | 7 |" in text
    assert "| Table 1 (`toys`) | Whole | 95.0 | 94.2 | +0.8 | 4,906 | 1 |" in text
    assert "\nOne of them was trained otherwise.\n" in text
    described = notes(bundles, results)
    assert "| SST | 2 | a mistake |" in described
    assert "| toys | 1,000 | 3 | 4 | 5 |" in described
    assert "| toy | 111111111111 | 3 | 80.0 |  |  |  |  | 0.700 |  | 200 | 100 |" in described
    assert "| `toy` | 111111111111 | 90.0 |" in described


def test_a_record_of_another_version_of_its_bundle_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"toy/card.json": json.dumps({"version": "1" * 12})})
    assert bundle_records.version({"model": "toy"}, tmp_path) == (
        "not recorded: perhaps an earlier one"
    )
    with pytest.raises(ConfigError, match=r"toy measured version 2{12}, .*toy is 1{12}"):
        bundle_records.version({**TRANSFER, "version": "2" * 12}, tmp_path)
    records = [*ROOT.glob("results/transfer/*.json"), *ROOT.glob("results/suite/*.json")]
    assert records
    for file in records:
        bundle_records.version(json.loads(file.read_text()), ROOT / "bundles")
