"""Tables, their records, and the two pages that are written from them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from heedful.training.errors import ConfigError
from tests.process import ROOT
from tests.training.test_tasks import write
from tools import bundle_records, paper_tables, papers, reproduced
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
TIMES = [{"caption": "Toys:", "rows": [{"row": "Whole", "seconds": 4.26}]}]
TIMES += [{"caption": "Others:", "rows": []}]


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


def page(results: Path) -> str:
    table = paper_tables.read(results / "tables" / "toys.toml")
    return "\n".join(reproduced.table_lines("toys", table, results))


def test_a_row_replaces_fields_of_its_configuration(results: Path) -> None:
    whole, cut = paper_tables.read(results / "tables" / "toys.toml").rows
    assert list(whole.runs((1, 2))) == ["whole-seed1", "whole-seed2"]
    first = whole.runs((1,))["whole-seed1"]
    run = cut.runs((2,))["no-tree-no-words-seed2"]
    assert (run.seed, run.alpha) == (2, 0.5)
    assert run.encoder.config == {**first.encoder.config, "dependency": False}
    assert run.optimiser == first.optimiser


def test_a_table_that_cannot_be_read_is_named(results: Path) -> None:
    with pytest.raises(ConfigError, match=r"no table none: known are toys$"):
        paper_tables.read(results / "tables" / "none.toml")
    (results / "tables" / "toys.toml").write_text("title = 3\n")
    with pytest.raises(ConfigError, match=r"toys\.toml: title: Input should be"):
        paper_tables.read(results / "tables" / "toys.toml")
    for file, read in (
        ("papers.toml", lambda: papers.catalogue(results)),
        ("summary.toml", lambda: report(BUNDLES, results)),
    ):
        with pytest.raises(ConfigError, match=rf"there is no .*{file}: work in a checkout, or"):
            read()


LOG = [{"epoch": 1}, *({"epoch": i, "processor_seconds": 3.0 * i} for i in (2, 3, 30))]
TAUGHT = {"teacher": {"run": "runs/wise", "weight": 0.7}}
ON_A_GPU = {"device": "cuda", "optimiser": {"precision": "float32"}}
DEVIATIONS = "Not as in the paper: batches of 32, the paper has 64."
DATA = "Trained on trec, 4,906 rows: whole."
SECONDS = "Processor seconds of SNLI's dev pairs, one thread: Whole 4.3."


def on_train(value: float) -> dict[str, Any]:
    return {"log": LOG, "train": {"metric": "accuracy", "value": value}}


@pytest.mark.parametrize(
    ("records", "row", "below"),
    [
        (
            [],
            "| Whole |  | 1.8m | not run |  | 94.2 |  | 0 |  |",
            [DEVIATIONS, "Whole: not run: no time.", SECONDS],
        ),
        (  # weights include the head's; sqrt(0.9 * 0.1 / 500 + 0.85 * 0.15 / 500) = 0.0209
            [(0, 1, 0.9, on_train(0.98)), (1, 1, 0.85, {})],
            "| Whole | 1,264,206 | 1.8m | 90.0 | 1.34 | 94.2 | -4.2 | 1 | 0123456789ab |",
            [
                *(DEVIATIONS, DATA, "On at most 10,000 rows of train: Whole 98.0."),
                *("Processor seconds of training an epoch, one thread: Whole 9.", SECONDS),
                "Whole minus another row (two standard errors of it): No tree, no words 5.0 (4.2).",
            ],
        ),
        (  # the difference to the paper is of the mean; a GPU is not one thread
            [
                (0, 1, 0.9, {**on_train(0.98), "config": {**ON_A_GPU, **TAUGHT}}),
                (0, 2, 0.92, on_train(0.99)),
            ],
            "| 91.0 ± 1.4 | 1.28 | 94.2 | -3.2 | 2 | 0123456789ab |",
            [
                *(DEVIATIONS, DATA),
                "**Whole** is taught by `wise`, over all-MiniLM-L6-v2: 0.7 of each target is the answer, and "
                "all of it where a pair has no label.",
                "On at most 10,000 rows of train: Whole 98.5.",
                "Precision of the products, by run: Whole float32 and bfloat16.",
                SECONDS,
            ],
        ),
    ],
    ids=["none", "two rows", "two runs"],
)
def test_a_table_and_the_list_below_it_say_what_the_records_hold(
    results: Path, records: list[tuple[int, int, float, dict[str, Any]]], row: str, below: list[str]
) -> None:
    write(results, {"performance/table_times.json": json.dumps({"tables": TIMES})})
    for number, seed, value, fields in records:
        record(results, number, seed, value, **fields)
    text = page(results)
    assert row in text
    assert [line[2:] for line in text.splitlines() if line.startswith("- ")] == below


def test_a_record_of_a_changed_source_stands_with_its_reason_alone(results: Path) -> None:
    record(results, 0, 1, 0.9)
    record(results, 0, 2, 0.92, commit="ba9876543210-dirty")
    with pytest.raises(ConfigError, match=r"toys: Whole: a record's source had changes that no"):
        page(results)
    reason = 'not_run = "no time"\nchanged = "a month of a core"'
    write(results, {"tables/toys.toml": TABLE.replace('not_run = "no time"', reason)})
    text = page(results)
    assert "| 2 | 0123456789ab, ba9876543210 with changes |" in text
    assert "- Whole, with changes: a month of a core." in text


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
SUITE = {
    **{"model": "toy", "version": "1" * 12, "split": "dev"},
    "figures": [
        {"dataset": name, "metric": "accuracy", "value": value, "rows": 9}
        for name, value in (("A", 0.9), ("mean of its word vectors: A", 0.5))
    ],
}


def test_the_pages_put_shipped_models_and_records_next_to_the_papers(results: Path) -> None:
    counts = {"rows": 1000, "test_seen": 3, "letters_seen": 4, "train_in_test": 5}
    overlaps = {"tasks": {"toys": counts}, "sst_in_subj": {"train": 1, "test": 2}}
    items = 'papers = [{ paper = "P", items = [{ item = "Table 1", tables = ["toys"] }] }]\n'
    files = {"summary.toml": SUMMARY, "papers.toml": items, "overlaps.json": json.dumps(overlaps)}
    files |= {"transfer/toy.json": json.dumps(TRANSFER), "suite/toy.json": json.dumps(SUITE)}
    write(results, files)
    bundles = results / "bundles"
    shutil.copytree(BUNDLES / "ms-san-sst2", bundles / "ms-san-sst2")
    card = bundles / "ms-san-sst2" / "card.json"
    fields = json.loads(card.read_text())
    score = {"dataset": "sst", "split": "test", "metric": "accuracy", "value": 0.9, "rows": 900}
    fields["scores"] = [score]
    fields["training"] |= {"commit": "0123456789ab-dirty", "teacher": "runs/wise", "seed": 7}
    card.write_text(json.dumps(fields))
    text = report(bundles, results)
    assert "| A | `ms-san-sst2`, taught by `wise` | 90.0 | 88.6 | +1.4 |" in text
    assert "| B | Whole (`toys`) |  | 94.2 |  |" in text
    assert "| `ms-san-sst2` | `wise` | 0123456789ab with changes | sst | test | accur" in text
    assert "| 90.0 | 1.00 | 88.6 | 900 | 7 |" in text
    assert "| Table 1 (`toys`) | Whole | not run | 94.2 |  |  | 0 |" in text
    assert "\nOne of them was trained otherwise.\n" in text
    described = notes(bundles, results)
    assert "| SST | 2 | a mistake |" in described
    assert "| toys | 1,000 | 3 | 4 | 5 |" in described
    assert "| toy | 111111111111 | 3 | 80.0 |  |  |  |  | 0.700 |  | 200 | 100 |" in described
    assert "| `toy` | 111111111111 | 90.0 |" in described
    assert "| `toy`, mean of its word vectors | 111111111111 | 50.0 |" in described
    record(results, 0, 1, 0.95)
    text = report(bundles, results)
    assert "| B | Whole (`toys`) | 95.0 | 94.2 | +0.8 |" in text
    assert "| Table 1 (`toys`) | Whole | 95.0 | 94.2 | +0.8 | 4,906 | 1 |" in text


def test_a_record_names_the_version_of_the_bundle_that_is_there(tmp_path: Path) -> None:
    write(tmp_path, {"toy/card.json": json.dumps({"version": "1" * 12})})
    for record, cell in (
        (TRANSFER, "1" * 12),
        ({"model": "toy"}, "not recorded: perhaps an earlier one"),
        ({"model": "gone", "version": "2" * 12}, "2" * 12),
    ):
        assert bundle_records.version(record, tmp_path) == cell
    with pytest.raises(ConfigError, match=r"toy measured version 2{12}, .*toy is 1{12}"):
        bundle_records.version({**TRANSFER, "version": "2" * 12}, tmp_path)


def test_the_records_of_this_repository_are_of_its_bundles() -> None:
    records = [*ROOT.glob("results/transfer/*.json"), *ROOT.glob("results/suite/*.json")]
    assert records
    for file in records:
        bundle_records.version(json.loads(file.read_text()), ROOT / "bundles")
