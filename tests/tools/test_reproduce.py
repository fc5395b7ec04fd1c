"""`python -m tools reproduce`, for real, on a table of one small row."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from heedful.training.config import Precision
from heedful.training.errors import ConfigError
from tests.builders import BuiltParser
from tests.cli.conftest import write_glove
from tests.training.test_config import committed
from tests.writing import write
from tools import paper_tables
from tools.reproduce import command, reproduce

CONFIG = """
task = "trec"
licence = "CC0-1.0"
epochs = {epochs}

[encoder]
name = "average"

[words]
vectors = "{glove}"
dim = 3

[optimiser]
batch = 8
"""
TABLE = """
title = "Toys"
seeds = [1]
set = {{ epochs = 3 }}
rows = [
    {{ name = "Kept", config = "{config}" }},
    {{ name = "Trained", config = "{config}", set = {{ epochs = 2 }} }},
]
"""
OTHERS = """
title = "Others"
seeds = [1]
rows = [{{ name = "Again", config = "{config}", set = {{ epochs = 2 }} }}]
"""


def test_what_has_no_record_of_its_configuration_is_trained_once(
    tmp_path: Path, pipeline: BuiltParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for .cache
    questions = "".join(
        f"HUM:ind a good film {i} ?\nNUM:dist a bad film {i} ?\n" for i in range(40)
    )
    config, results = tmp_path / "average-trec.toml", tmp_path / "results"
    files = {
        "train_5500.label": questions,
        "TREC_10.label": questions,
        config.name: CONFIG.format(epochs=50, glove=write_glove(tmp_path)),
        "results/tables/toys.toml": TABLE.format(config=config),
        "results/tables/others.toml": OTHERS.format(config=config),
    }
    write(tmp_path, files)
    kept = results / "runs" / "toys" / "kept-seed1.json"
    kept.parent.mkdir(parents=True)
    (run,) = paper_tables.read(results / "tables" / "toys.toml").rows[0].runs((1,)).values()
    kept.write_text(json.dumps({"config": run.model_dump(mode="json"), "scores": []}))
    (kept.parent / "trained-seed1.json").write_text(kept.read_text())  # of another configuration

    def run_table(name: str, precision: Precision | None = None) -> None:
        where: dict[str, Any] = {"data": tmp_path, "parser": str(pipeline.folder)}
        quiet = Console(file=io.StringIO())
        reproduce(name, results, tmp_path / "runs", console=quiet, precision=precision, **where)

    run_table("toys", "bfloat16")
    assert json.loads(kept.read_text())["scores"] == []
    record = json.loads((kept.parent / "trained-seed1.json").read_text())
    assert record["config"]["epochs"] == 2
    assert record["config"]["optimiser"]["precision"] == "bfloat16"
    assert record["parameters"] == 0
    assert len(record["log"]) == 2
    (score,) = record["scores"]
    assert (score["dataset"], score["split"], score["rows"]) == ("trec", "test", 80)
    learned = record["train"]
    assert (learned["split"], learned["metric"]) == ("train", "accuracy")
    assert learned["rows"] == record["data"][0]["rows"] < 80
    assert all(0 <= one["value"] <= 1 for one in (score, learned))
    assert [path.name for path in (tmp_path / "runs" / "toys").iterdir()] == ["trained-seed1"]
    written = (kept.parent / "trained-seed1.json").stat().st_mtime_ns
    run_table("toys")  # the record counts in either precision
    assert (kept.parent / "trained-seed1.json").stat().st_mtime_ns == written

    run_table("others")
    again = json.loads((results / "runs" / "others" / "again-seed1.json").read_text())
    assert again == {**record, "row": "Again"}
    assert not (tmp_path / "runs" / "others").exists()


def test_a_tree_with_changes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record would name a commit that does not hold the source."""
    committed(tmp_path, "source")
    (tmp_path / "source").write_text("after")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    with pytest.raises(ConfigError, match=r"the tree is \w{7,}-dirty: commit the changes"):
        command("toys", results=tmp_path)
