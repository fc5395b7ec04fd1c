"""A tenth of SNLI through the workshop: train, export with int8, check, score; and an adapter over MiniLM, scored."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful.cli.main import app
from heedful.export.dev_split import DevSplit, torch_head, torch_vectors
from heedful.export.run import read
from heedful.text.parse import Parser
from heedful.training import tasks
from tests.datasets import DATA, needs_data
from tests.shipped import BUNDLES
from tools.unpack import unpack

tasks.add("")
CONFIG = Path("configs/ms-san-snli.toml")


@pytest.mark.slow
@needs_data
def test_a_tenth_of_snli_trains_exports_and_scores(tmp_path: Path) -> None:
    """A band: chance is .34, all of SNLI's subset .80; one epoch of 10,000 pairs lies between."""
    config = tmp_path / "tenth.toml"
    whole = CONFIG.read_text()
    config.write_text(whole.replace("epochs = 4", "epochs = 1\ntrain_rows = 10000"))
    run, bundle = tmp_path / "run", tmp_path / "bundles/tenth"
    data = ("--data", str(DATA), "--parser", str(BUNDLES / "parser"))
    for command in (
        ("train", str(config), "--run", str(run), *data),
        ("export", str(run), "--out", str(bundle), "--storage", "small", *data),
        ("selftest", str(bundle), "--parser", str(BUNDLES / "parser")),
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, (command, result.output)
    card = json.loads((bundle / "card.json").read_text())
    (score,) = (one["value"] for one in card["scores"] if one["metric"] == "accuracy")
    assert 0.55 < score < 0.75
    assert abs(card["int8"]["int8"] - card["int8"]["float32"]) < 0.01
    assert card["trained"]["cosine"] > 0.995


@needs_data
def test_an_adapter_answers_as_its_card_says(tmp_path: Path) -> None:
    """With MiniLM's package, on the first 200 pairs of SNLI's dev split, where the score of all is .86 and its error
    here .025. tests/export/test_run.py exports a small one of this shape."""
    trained = read(unpack(Path("adapters/ms-san-minilm-nli-mean"), tmp_path))
    (claimed,) = (one.value for one in trained.scores if one.split == "dev")
    task = tasks.get("nli")
    examples = task.dev.read(DATA)[:200]
    dev = DevSplit.read(task, examples, Parser.load(str(BUNDLES / "parser")), trained)
    vectors = torch_vectors(trained, dev.sentences)
    score, *_ = dev.scores(trained.labels, vectors, torch_head(trained))
    assert abs(score.value - claimed) < 0.07
