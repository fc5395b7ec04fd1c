"""From a text file of trees to an answer: trained, exported and served, each for real."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from heedful.export import run
from heedful.export.bundle import export_bundle
from heedful.runtime.bundles.bundle import read
from heedful.runtime.service import Options, running
from heedful.text.batch import collate
from heedful.text.parse import ParseJob, Parser
from heedful.training import checkpoint, loop
from heedful.training.config import Paths, RunConfig
from heedful.training.errors import RunMissing
from tests.asking import classify
from tests.builders import build_parser

GOOD, BAD = ("good", "lovely", "fine"), ("bad", "awful", "dull")
TEXTS = ["a movie is good", "a movie is dull", "an unheard movie is  lovely", "bad"]


def train(folder: Path, parser: Path, **changes: Any) -> Path:
    """A run of two epochs on six sentences, its vectors from a GloVe text file.

    `changes` replace sections of the configuration.
    """
    lines = [f"({label} (2 (2 a) (2 movie)) ({label} (2 is) ({label} {word})))\n"
             for label, held in ((4, GOOD), (0, BAD)) for word in held]  # fmt: skip
    (folder / "trees").mkdir()
    for split in ("train", "dev"):
        (folder / "trees" / f"{split}.txt").write_text("".join(lines))
    glove = folder / "glove.txt"
    rng = np.random.default_rng(0)
    rows = [f"{w} {' '.join(map(str, rng.normal(size=12).round(3)))}\n" for w in (*GOOD, *BAD)]
    glove.write_text("".join(rows))
    config = RunConfig.model_validate(
        {
            "task": "sst2",
            "licence": "CC0-1.0",
            "epochs": 2,
            "max_tokens": 30,
            "alpha": 0.25,
            "encoder": {"name": "ms-san", "config": {"hidden": 12, "dropout": 0.1}},
            "words": {"vectors": str(glove), "dim": 12},
            "head": {"hidden": 8, "dropout": 0.1},
            "optimiser": {"batch": 4, "ema_decay": 0.5},
            **changes,
        }
    )
    paths = Paths(
        folder / "run", folder, str(parser), folder / "cache", Path("configs/toy-sst2.toml")
    )
    loop.train(config, paths, resume=False, console=Console(file=io.StringIO()))
    return paths.run


async def probabilities(models: Path) -> np.ndarray:
    """What the one bundle in `models` answers to TEXTS."""
    async with running(Options(models, device="cpu", threads=1)) as service:
        return (await classify(service, TEXTS)).value


def test_a_run_becomes_a_bundle_that_answers_as_the_trained_model(tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    parser = build_parser(models / "parser")
    folder = train(tmp_path, parser.folder)
    trained = run.read(folder)
    card = export_bundle(trained, models / "ms-san-sst2")
    assert read(models / "ms-san-sst2").card == card
    assert (card.task, card.kind, card.labels) == (
        "sst2",
        "classification",
        ("negative", "positive"),
    )
    assert (card.max_tokens, card.alpha, card.licence) == (30, 0.25, "CC0-1.0")
    assert card.parser.fingerprint == parser.fingerprint
    assert card.training.config == "configs/toy-sst2.toml"
    assert [(score.split, score.rows) for score in card.scores] == [("dev", 6)]

    parses = Parser.load(parser.folder).parse([ParseJob(text, 30, True) for text in TEXTS])
    batch = collate([trained.vocab.sentence(parse.tokens, parse.heads) for parse in parses])
    with torch.inference_mode():
        assert trained.head is not None
        vectors = trained.model.eval()(
            *map(torch.from_numpy, (batch.ids, batch.lengths, batch.heads)), torch.tensor(0.25)
        )
        expected = trained.head.eval()(vectors).softmax(-1)
    np.testing.assert_allclose(asyncio.run(probabilities(models)), expected, atol=1e-2)


@pytest.mark.parametrize("missing", [checkpoint.RECORD, checkpoint.BEST, checkpoint.VOCAB])
def test_a_run_that_has_not_ended_is_refused(tmp_path: Path, missing: str) -> None:
    for name in {checkpoint.RECORD, checkpoint.BEST, checkpoint.VOCAB} - {missing}:
        (tmp_path / name).touch()
    if missing != checkpoint.RECORD:
        config = {"task": "sst2", "encoder": {"name": "ms-san"}, "licence": "none"}
        (tmp_path / checkpoint.RECORD).write_text(json.dumps({"config": config}))
    with pytest.raises(RunMissing, match=missing):
        run.read(tmp_path)


def test_the_run_of_a_cross_encoder_is_refused(tmp_path: Path) -> None:
    (tmp_path / checkpoint.RECORD).write_text(
        json.dumps({"config": {"encoder": {"name": "cross-encoder"}}})
    )
    (tmp_path / checkpoint.BEST).touch()
    with pytest.raises(RunMissing, match="run of a cross-encoder: name an encoder's"):
        run.read(tmp_path)
