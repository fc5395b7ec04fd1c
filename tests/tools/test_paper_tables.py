"""Tables, records and the page that is written from them."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import bundles
from heedful.models.registry import ENCODERS
from heedful.training import tasks
from heedful.training.errors import ConfigError
from tests.shipped import SHIPPED
from tools import paper_tables, papers
from tools.paper_tables import RowConfig
from tools.report import report

BUNDLES, RESULTS = Path("bundles"), Path("results")
TABLE = """
title = "Toys"
full = "Whole"
seeds = [1, 2]

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


def record(folder: Path, row: int, seed: int, value: float) -> None:
    """The record of a run of TABLE's first or second row, tested on 500 questions."""
    folder.mkdir(parents=True, exist_ok=True)
    table = paper_tables.read(folder.parent.parent / "tables" / "toys.toml")
    ((name, config),) = table.rows[row].runs((seed,)).items()
    found = {
        "config": config.model_dump(mode="json"),
        "scores": [{"metric": "accuracy", "value": value, "rows": 500}],
        "data": [{"name": "trec", "rows": 4906, "note": "whole"}],
    }
    (folder / f"{name}.json").write_text(json.dumps(found))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    shutil.copytree(RESULTS / "tables", tmp_path / "tables")
    (tmp_path / "tables" / "toys.toml").write_text(TABLE)
    for name in ("goals.toml", "papers.toml", "overlaps.json"):
        (tmp_path / name).write_bytes((RESULTS / name).read_bytes())
    return tmp_path


def test_a_row_replaces_fields_of_its_configuration(results: Path) -> None:
    whole, cut = paper_tables.read(results / "tables" / "toys.toml").rows
    assert list(whole.runs((1, 2))) == ["whole-seed1", "whole-seed2"]
    first = whole.runs((1,))["whole-seed1"]
    run = cut.runs((2,))["no-tree-no-words-seed2"]
    assert (run.seed, run.alpha) == (2, 0.5)
    assert run.encoder.config == {**first.encoder.config, "dependency": False}
    assert run.optimiser == first.optimiser


def test_a_table_replaces_fields_of_every_row(results: Path) -> None:
    file = results / "tables" / "toys.toml"
    file.write_text(TABLE.replace("[[rows]]", "set = { alpha = 2.0, epochs = 7 }\n\n[[rows]]", 1))
    runs = [row.runs((1,)) for row in paper_tables.read(file).rows]
    found = [(run.alpha, run.epochs) for one in runs for run in one.values()]
    assert found == [(2.0, 7), (0.5, 7)]


def test_a_row_of_ten_folds() -> None:
    row = RowConfig(name="CR", config=Path("configs/ms-san-cr.toml"), folds=True)
    runs = row.runs((1,))
    assert [run.task for run in runs.values()] == [f"cr:{fold}" for fold in range(10)]
    assert "cr-seed1-fold9" in runs


@pytest.mark.parametrize("file", sorted((RESULTS / "tables").glob("*.toml")), ids=lambda f: f.stem)
def test_a_table_of_ours_names_configurations_and_tasks(file: Path) -> None:
    table = paper_tables.read(file)
    assert table.full in (None, *(row.name for row in table.rows))
    names = [name for row in table.rows for name in row.runs(table.seeds)]
    assert len(names) == len(set(names))
    for row in table.rows:
        for name, run in row.runs(table.seeds).items():
            tasks.get(run.task)
            if (record := RESULTS / "runs" / file.stem / f"{name}.json").exists():
                assert paper_tables.is_of(json.loads(record.read_text()), run), (
                    f"{record}: reproduce it"
                )


def test_an_unknown_table_names_the_known_ones(results: Path) -> None:
    known = ", ".join(sorted(file.stem for file in (RESULTS / "tables").glob("*.toml")))
    with pytest.raises(ConfigError, match=f"no table none: known are {known}, toys$"):
        paper_tables.read(results / "tables" / "none.toml")
    (results / "tables" / "toys.toml").write_text("title = 3\n")
    with pytest.raises(ConfigError, match=r"toys\.toml: title: Input should be"):
        paper_tables.read(results / "tables" / "toys.toml")


def test_the_page_of_a_table(results: Path) -> None:
    """Weights include the head's; a difference is held against other test rows and other seeds."""
    runs = results / "runs" / "toys"
    page = report(BUNDLES, results)
    assert "| Whole |  | 1.8m | not run |  | 0 | 94.2 |" in page
    assert "- Whole: not run: no time." in page
    record(runs, 0, 1, 0.9)
    record(runs, 1, 1, 0.85)
    page = report(BUNDLES, results)
    assert "| Whole | 1,264,206 | 1.8m | 90.0 | 1.34 | 1 | 94.2 |" in page
    assert "- Whole minus No tree, no words: 5.0 (more than two standard errors, 4.2)." in page
    assert "- Trained on trec, 4,906 rows: whole." in page
    assert "- Whole: not run" not in page
    record(runs, 0, 2, 0.92)
    page = report(BUNDLES, results)
    assert "| Whole | 1,264,206 | 1.8m | 91.0 ± 1.4 | 1.28 | 2 | 94.2 |" in page
    assert "6.0 (more than two standard errors, 4.6)" in page
    record(runs, 1, 1, 0.89)
    assert "2.0 (within two standard errors, 4.3)" in report(BUNDLES, results)
    record(runs, 1, 1, 0.99)
    assert "-8.0 (the row is better, by more than two standard errors, 3.4)" in report(
        BUNDLES, results
    )


def test_the_cost_of_an_epoch_is_the_median_of_those_recorded(results: Path) -> None:
    runs = results / "runs" / "toys"
    for row in (0, 1):
        record(runs, row, 1, 0.9)
    assert "Processor seconds" not in report(BUNDLES, results)
    file = runs / "whole-seed1.json"
    log = [{"epoch": 1}, *({"epoch": i, "processor_seconds": 3.0 * i} for i in (2, 3, 30))]
    file.write_text(json.dumps({**json.loads(file.read_text()), "log": log}))
    said = "- Processor seconds of training an epoch, one thread: Whole 9.\n"
    assert said in report(BUNDLES, results)
    found = json.loads(file.read_text())
    found["config"]["device"] = "cuda"
    file.write_text(json.dumps(found))
    page = report(BUNDLES, results)
    assert "Processor seconds of training" not in page, "a GPU is not one thread"
    assert "| Whole | " in page, "a record counts on any device"


def test_the_time_of_a_test_is_that_of_the_benchmark(results: Path) -> None:
    rows = [{"row": "Whole", "seconds": 4.26}]
    found = [{"caption": "Toys:", "rows": rows}, {"caption": "Others:", "rows": []}]
    (results / "performance").mkdir()
    (results / "performance" / "table_times.json").write_text(json.dumps({"tables": found}))
    said = "- Processor seconds of SNLI's dev pairs, one thread: Whole 4.3.\n"
    assert said in report(BUNDLES, results)


def test_scores_on_train_stand_below_the_table(results: Path) -> None:
    runs = results / "runs" / "toys"
    for seed in (1, 2):
        record(runs, 0, seed, 0.9)
        file = runs / f"whole-seed{seed}.json"
        train = {"metric": "accuracy", "value": 0.97 + seed / 100}
        file.write_text(json.dumps({**json.loads(file.read_text()), "train": train}))
    record(runs, 1, 1, 0.9)  # a record without
    assert "- On at most 10,000 rows of train: Whole 98.5.\n" in report(BUNDLES, results)


def test_runs_of_a_row_in_two_precisions_are_named(results: Path) -> None:
    runs = results / "runs" / "toys"
    for seed, precision in ((1, "bfloat16"), (2, "float32")):
        record(runs, 0, seed, 0.9)
        file = runs / f"whole-seed{seed}.json"
        found = json.loads(file.read_text())
        found["config"]["optimiser"]["precision"] = precision
        file.write_text(json.dumps(found))
    record(runs, 1, 1, 0.9)
    said = "- Precision of the products, by run: Whole bfloat16 and float32.\n"
    assert said in report(BUNDLES, results)


def test_a_row_that_was_taught_names_its_teacher(results: Path) -> None:
    file = results / "tables" / "toys.toml"
    teacher = 'set = { teacher = { run = "runs/wise", weight = 0.7 } }\n\n[[rows]]'
    file.write_text(TABLE.replace("[[rows]]", teacher, 1))
    record(results / "runs" / "toys", 0, 1, 0.9)
    assert "- **Whole** is taught by `wise`, over all-MiniLM-L6-v2: 0.7" in report(BUNDLES, results)


def test_every_encoder_has_a_row() -> None:
    """Of the papers that have tables; a row without a record says why. An encoder of another paper needs none."""
    found = set()
    for file in (RESULTS / "tables").glob("*.toml"):
        table = paper_tables.read(file)
        for row in table.rows:
            found |= {run.encoder.name for run in row.runs(table.seeds).values()}
            ran = paper_tables.records(RESULTS, file.stem, row, table.seeds)
            assert ran or row.not_run, (
                f"{file.stem}: {row.name}: say in not_run why there is no run"
            )
    papers_here = {ENCODERS[name].paper for name in found}
    assert found == {name for name, entry in ENCODERS.items() if entry.paper in papers_here}


def test_every_item_of_the_papers_says_what_is_here_and_what_is_not() -> None:
    lines = papers.catalogue(RESULTS)
    assert {line.paper.rpartition(", ")[2] for line in lines} == {"DiSAN", "DSA", "LAMA", "MS-SAN"}
    shown = "\n".join(line.here for line in lines)
    for file in (RESULTS / "tables").glob("*.toml"):
        assert f"`{file.stem}`: " in shown
    for line in lines:
        assert line.here != "nothing" or line.missing, line
    for name in re.findall(r"\(figures/(.*?)\)", shown):
        assert (Path("docs/figures") / name).is_file()
    for name in re.findall(r"`([a-z0-9-]+)` ships", shown):
        assert (BUNDLES / name / "card.json").is_file()


def test_the_page_of_the_shipped_models(results: Path) -> None:
    """A card's score is printed next to the figure of its encoder."""
    page = report(BUNDLES, results)
    for file in BUNDLES.glob("*/card.json"):
        card: dict[str, Any] = json.loads(file.read_text())
        for score in card["scores"]:
            shown = (
                f"{100 * score['value']:.1f}"
                if score["metric"] == "accuracy"
                else f"{score['value']:.3f}"
            )
            said = f"{score['dataset']} | {score['split']} | {score['metric']} | {shown} |"
            assert re.search(rf"^\| `{card['name']}` \| [^|]*\| {re.escape(said)}", page, re.M)
    assert (
        "| `ms-san-sst2` | `minilm-sst2` | sst | test | accuracy | 89.1 | 0.73 | 88.6 | 1,821 | 1 |"
        in page
    )
    assert (
        "| `ms-san-sst5` | `minilm-sst5` | sst | test | accuracy | 51.4 | 1.06 | 53.5 | 2,210 | 1 |"
        in page
    )
    embedding = (
        "| `ms-san-embed` | all-MiniLM-L6-v2 | stsb | dev | spearman | 0.851 |  |  | 1,500 |"
    )
    assert embedding in page
    taught = "| `ms-san-nli` | `ms-san-nli-labelled` | snli | 104,872 |"
    assert taught in page
    assert (
        "| SST-2 | `ms-san-sst2`, taught by `minilm-sst2` | 89.1 | 88.6 | 87.5 | goal reached |"
        in page
    )
    assert (
        "| SST-5 | `ms-san-sst5`, taught by `minilm-sst5` | 51.4 | 52.0 | 50.5 | minimum reached |"
        in page
    )


GOALS = """
papers = []
asked = []
goals = [
    { name = "A", bundle = "ms-san-sst2", dataset = "sst", metric = "accuracy", goal = 0.9, floor = 0.8 },
    { name = "B", bundle = "ms-san-embed", dataset = "stsb", split = "dev", metric = "pearson", goal = 0.7, floor = 0 },
    { name = "C", table = "toys", row = "Whole", goal = 0.99, floor = 0.95 },
]
"""


def test_a_folder_without_tables_and_records_is_named(tmp_path: Path) -> None:
    for file, read in (
        ("papers.toml", lambda: papers.catalogue(tmp_path)),
        ("goals.toml", lambda: report(BUNDLES, tmp_path)),
    ):
        with pytest.raises(ConfigError, match=rf"there is no .*{file}: work in a checkout, or"):
            read()


def test_what_the_goals_say_was_reached(results: Path) -> None:
    (results / "goals.toml").write_text(GOALS)
    page = report(BUNDLES, results)
    assert (
        "| A | `ms-san-sst2`, taught by `minilm-sst2` | 89.1 | 90.0 | 80.0 | minimum reached |"
        in page
    )
    assert (
        "| B | `ms-san-embed`, dev, taught by all-MiniLM-L6-v2 | 0.848 | 0.700 | 0.000 | goal reached |"
        in page
    )
    assert "| C | Whole (`toys`) |  | 99.0 | 95.0 | not run |" in page
    for seed, value in ((1, 0.9), (2, 0.92)):
        record(results / "runs" / "toys", 0, seed, value)
    page = report(BUNDLES, results)
    assert "| C | Whole (`toys`) | 91.0 | 99.0 | 95.0 | **missed** |" in page


def test_every_minimum_is_reached() -> None:
    page = report(BUNDLES, RESULTS)
    (part,) = re.findall(r"^## Goals$(.*?)^## ", page, re.M | re.S)
    rows = re.findall(r"^\| (?! ?\||-)(.*) \| ([^|]+) \|$", part, re.M)
    assert len(rows) >= 13
    assert {result for _, result in rows} <= {"goal reached", "minimum reached"}, part


def test_the_page_is_that_of_the_records() -> None:
    """After a change of a bundle or a record: `python -m tools report`."""
    with bundles(SHIPPED, BUNDLES) as folder:
        page = report(folder, RESULTS)
        assert page == report(folder, RESULTS)
    assert Path("docs/results.md").read_text(encoding="utf-8") == page
