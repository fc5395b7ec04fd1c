"""Tables, their records, and the parts of the page that are written from them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from heedful.training.errors import ConfigError
from tests.training.test_tasks import write
from tools import paper_tables, papers, reproduced
from tools.report import notes, report

BUNDLES, RESULTS = Path("bundles"), Path("results")
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
        "config": config.model_dump(mode="json"),
        "scores": [{"metric": "accuracy", "value": value, "rows": 500}],
        "data": [{"name": "trec", "rows": 4906, "note": "whole"}],
        "commit": "0123456789ab",
        **fields,
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


def test_a_row_shows_its_score_beside_the_papers(results: Path) -> None:
    """Weights include the head's; the difference to the paper is of the mean."""
    assert "| Whole |  | 1.8m | not run |  | 94.2 |  | 0 |  |" in page(results)
    assert "- Whole: not run: no time." in page(results)
    record(results, 0, 1, 0.9)
    text = page(results)
    row = "| Whole | 1,264,206 | 1.8m | 90.0 | 1.34 | 94.2 | -4.2 | 1 | 0123456789ab |"
    assert row in text
    assert "- Not as in the paper: batches of 32, the paper has 64." in text
    assert "- Trained on trec, 4,906 rows: whole." in text
    assert "- Whole: not run" not in text


def test_a_record_of_a_changed_source_stands_with_its_reason_alone(results: Path) -> None:
    record(results, 0, 1, 0.9)
    record(results, 0, 2, 0.92, commit="ba9876543210-dirty")
    with pytest.raises(ConfigError, match=r"toys: Whole: a record's source had changes that no"):
        page(results)
    reason = 'not_run = "no time"\nchanged = "a month of a core"'
    table = results / "tables" / "toys.toml"
    table.write_text(TABLE.replace('not_run = "no time"', reason))
    text = page(results)
    row = "| 91.0 ± 1.4 | 1.28 | 94.2 | -3.2 | 2 | 0123456789ab, ba9876543210 with changes |"
    assert row in text
    assert "- Whole, with changes: a month of a core." in text


def test_a_difference_stands_with_its_error(results: Path) -> None:
    """sqrt(0.9 * 0.1 / 500 + 0.85 * 0.15 / 500) = 0.0209."""
    record(results, 0, 1, 0.9)
    record(results, 1, 1, 0.85)
    said = "- Whole minus another row (two standard errors of it): No tree, no words 5.0 (4.2)."
    assert said in page(results)


def test_the_lists_below_a_table_say_what_the_records_hold(results: Path) -> None:
    log = [{"epoch": 1}, *({"epoch": i, "processor_seconds": 3.0 * i} for i in (2, 3, 30))]
    record(results, 0, 1, 0.9, log=log, train={"metric": "accuracy", "value": 0.98})
    record(results, 0, 2, 0.9, train={"metric": "accuracy", "value": 0.99})
    record(results, 1, 1, 0.9)  # without either
    rows = [{"row": "Whole", "seconds": 4.26}]
    times = [{"caption": "Toys:", "rows": rows}, {"caption": "Others:", "rows": []}]
    write(results, {"performance/table_times.json": json.dumps({"tables": times})})
    text = page(results)
    assert "- On at most 10,000 rows of train: Whole 98.5.\n" in text
    assert "- Processor seconds of training an epoch, one thread: Whole 9.\n" in text
    assert "- Processor seconds of SNLI's dev pairs, one thread: Whole 4.3.\n" in text
    file = results / "runs" / "toys" / "whole-seed1.json"
    changed = json.loads(file.read_text())
    changed["config"]["device"] = "cuda"
    changed["config"]["optimiser"]["precision"] = "float32"
    file.write_text(json.dumps(changed))
    text = page(results)
    assert "Processor seconds of training" not in text, "a GPU is not one thread"
    assert "- Precision of the products, by run: Whole float32 and bfloat16.\n" in text


def test_a_row_that_was_taught_names_its_teacher(results: Path) -> None:
    teacher = 'set = { teacher = { run = "runs/wise", weight = 0.7 } }\n\n[[rows]]'
    (results / "tables" / "toys.toml").write_text(TABLE.replace("[[rows]]", teacher, 1))
    record(results, 0, 1, 0.9)
    assert "- **Whole** is taught by `wise`, over all-MiniLM-L6-v2: 0.7" in page(results)


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


def test_the_summary_and_the_shipped_models_stand_beside_the_papers(results: Path) -> None:
    counts = {"rows": 1000, "test_seen": 3, "letters_seen": 4, "train_in_test": 5}
    overlaps = {"tasks": {"toys": counts}, "sst_in_subj": {"train": 1, "test": 2}}
    items = 'papers = [{ paper = "P", items = [{ item = "Table 1", tables = ["toys"] }] }]\n'
    files = {"summary.toml": SUMMARY, "papers.toml": items, "overlaps.json": json.dumps(overlaps)}
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
    record(results, 0, 1, 0.95)
    text = report(bundles, results)
    assert "| B | Whole (`toys`) | 95.0 | 94.2 | +0.8 |" in text
    assert "| Table 1 (`toys`) | Whole | 95.0 | 94.2 | +0.8 | 4,906 | 1 |" in text
