"""From a text file of trees to an answer: trained, exported and served, each for real."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

import heedful
from heedful.cli import export
from heedful.export import run
from heedful.export.bundle import export_bundle
from heedful.export.weight_storage import Storage, int8_rows
from heedful.runtime.bundles.bundle import read
from heedful.text.batch import collate
from heedful.text.parse import ParseJob, Parser
from heedful.training import checkpoint, loop
from heedful.training.config import Paths, RunConfig
from heedful.training.errors import RunMissing
from tests.builders import BuiltParser
from tests.transformer import tiny_folder
from tools.unpack import BASE_RUN, PACKED, SCALE, unpack

GOOD, BAD = ("good", "lovely", "fine"), ("bad", "awful", "dull")
TEXTS = ["a movie is good", "a movie is dull", "an unheard movie is  lovely", "bad"]
DIM = 12
TABLE = "embedding.transformer.embeddings.word_embeddings.weight"


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
    rows = [f"{w} {' '.join(map(str, rng.normal(size=DIM).round(3)))}\n" for w in (*GOOD, *BAD)]
    glove.write_text("".join(rows))
    config = RunConfig.model_validate(
        {
            "task": "sst2",
            "licence": "CC0-1.0",
            "epochs": 2,
            "max_tokens": 30,
            "alpha": 0.25,
            "encoder": {"name": "ms-san", "config": {"hidden": 12, "dropout": 0.1}},
            "words": {"vectors": str(glove), "dim": DIM},
            "head": {"hidden": 8, "dropout": 0.1},
            "optimiser": {"batch": 4, "ema_decay": 0.5},
            **changes,
        }
    )
    file = Path("configs/toy-sst2.toml")
    paths = Paths(folder / "run", folder, str(parser), folder / "cache", file)
    loop.train(config, paths, resume=False, console=Console(file=io.StringIO()))
    return paths.run


def over_transformer(
    folder: Path, lora_rank: int = 0, freeze: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Sections of a configuration."""
    name = str(tiny_folder(folder / "tiny", DIM))
    return {
        "encoder": {"name": "ms-san-bert", "config": {"hidden": 12, "dropout": 0.1}},
        "transformer": {"name": name, "dim": DIM, "lora_rank": lora_rank, "rate": 1e-2},
        "freeze": freeze,
    }


@pytest.mark.parametrize("changes", [{}, {"lora_rank": 2}, {"freeze": ("transformer",)}], ids=str)
def test_what_was_not_trained_is_read_from_where_it_came_from(
    tmp_path: Path, pipeline: BuiltParser, changes: dict[str, Any]
) -> None:
    folder = train(tmp_path, pipeline.folder, **over_transformer(tmp_path, **changes))
    assert not (folder / checkpoint.VOCAB).exists()
    trained = run.read(folder)
    stored, start = checkpoint.best(folder), load_file(tmp_path / "tiny/model.safetensors")
    assert (f"sentence.{TABLE}" in stored) is not bool(changes)
    start_table = start["embeddings.word_embeddings.weight"]
    assert torch.equal(trained.model.state_dict()[TABLE], start_table) is bool(changes)
    how = "frozen" if "freeze" in changes else "fine-tuned"
    assert trained.training.vectors == f"{tmp_path / 'tiny'}, {how}"


@pytest.mark.parametrize("storage", ["normal", "small"])
def test_a_run_becomes_a_bundle_that_answers_as_the_trained_model(
    tmp_path: Path, pipeline: BuiltParser, storage: Storage
) -> None:
    """Of words, and of a transformer with adapters in small storage."""
    small = storage == "small"
    changes = over_transformer(tmp_path, lora_rank=2) if small else {}
    trained = run.read(train(tmp_path, pipeline.folder, **changes))
    models = tmp_path / "models"
    card = export_bundle(trained, models / "ms-san-sst2", storage)
    assert read(models / "ms-san-sst2").card == card
    assert (card.task, card.kind, card.labels) == (
        "sst2",
        "classification",
        ("negative", "positive"),
    )
    assert (card.max_tokens, card.alpha, card.licence) == (30, 0.25, "CC0-1.0")
    assert card.parser.fingerprint == pipeline.fingerprint
    assert card.training.config == "configs/toy-sst2.toml"
    assert [(score.split, score.rows) for score in card.scores] == [("dev", 6)]
    assert ("int8, large tables int4" in card.parity.against) == small

    parses = Parser.load(pipeline.folder).parse([ParseJob(text, 30, True) for text in TEXTS])
    batch = collate([trained.vocab.sentence(parse.tokens, parse.heads) for parse in parses])
    feeds = batch.feeds(("ids", "lengths", *trained.model.inputs), 0.25)
    with torch.inference_mode():
        assert trained.head is not None
        vectors = trained.model.eval()(**{name: torch.as_tensor(v) for name, v in feeds.items()})
        expected = trained.head.eval()(vectors).softmax(-1)
    with heedful.load(models / "ms-san-sst2", parser=str(pipeline.folder)) as model:
        found = model.predict_proba(TEXTS)
    np.testing.assert_allclose(found, expected, atol=2e-2 if small else 1e-2)


def test_a_run_in_8_bits_over_another_is_exported_without_the_dataset(
    tmp_path: Path, pipeline: BuiltParser, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `adapters/` holds them: rows with scales, without the weights that are the same in the folder beside."""
    folder = train(tmp_path, pipeline.folder, **over_transformer(tmp_path, lora_rank=2))
    stored = {}
    for name, one in checkpoint.best(folder).items():
        if one.ndim == 2 and one.is_floating_point():
            stored[name], stored[name + SCALE] = int8_rows(one)
        else:
            stored[name] = one.half() if one.is_floating_point() else one
    first, second = (Path(shutil.copytree(folder, tmp_path / "adapters" / name)) for name in "ab")
    for copy in (first, second):
        (copy / checkpoint.BEST).unlink()
    changed = next(name for name in stored if name.startswith("head.") and stored[name].ndim == 2)
    checkpoint.save(first / PACKED, stored)
    checkpoint.save(second / PACKED, {BASE_RUN: "a", changed: 2 * stored[changed]})
    for copy in (first, second):
        (copy / checkpoint.SCORES).write_text("[]")
    record = json.loads((second / checkpoint.RECORD).read_text())
    (second / checkpoint.RECORD).write_text(json.dumps({**record, "temperature": 1.5}))

    second = unpack(second, tmp_path / "runs")
    whole, small = run.read(folder), run.read(second)
    ids, pieces = torch.tensor([[2, 5, 6, 7, 3]]), torch.tensor([[1, 2]])
    arrays = (ids, torch.tensor([2]), torch.tensor([[1, 1]]), torch.tensor(0.25), pieces)
    with torch.inference_mode():
        expected, found = (one.model.eval()(*arrays) for one in (whole, small))
    assert 0 < (found - expected).abs().max() < 0.02 * expected.abs().max()
    bundle, none = tmp_path / "tiny-sst2", tmp_path / "none"
    export.command(second, bundle, "small", int8=False, data=none, parser=str(pipeline.folder))
    assert "not measured" in capsys.readouterr().err
    card = read(bundle).card
    assert (card.temperature, card.trained) == (1.5, None)
    alone = shutil.copytree(tmp_path / "adapters" / "b", tmp_path / "elsewhere" / "b")
    with pytest.raises(RunMissing, match=r"elsewhere/a holds no best\.pt"):
        unpack(alone, tmp_path / "runs")


@pytest.mark.parametrize(
    ("missing", "encoder", "said"),
    [
        *((file, "ms-san", file) for file in (checkpoint.RECORD, checkpoint.BEST)),
        (checkpoint.VOCAB, "ms-san", checkpoint.VOCAB),
        ("", "cross-encoder", "run of a cross-encoder: name the run of an encoder"),
    ],
)
def test_what_is_no_finished_run_of_an_encoder_is_refused(
    tmp_path: Path, missing: str, encoder: str, said: str
) -> None:
    config = {"task": "sst2", "encoder": {"name": encoder}, "licence": "none"}
    (tmp_path / checkpoint.RECORD).write_text(json.dumps({"config": config}))
    for name in (checkpoint.BEST, checkpoint.VOCAB):
        (tmp_path / name).touch()
    (tmp_path / missing).unlink() if missing else None
    with pytest.raises(RunMissing, match=said):
        run.read(tmp_path)
