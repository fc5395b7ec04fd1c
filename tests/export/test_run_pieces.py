"""A model over a transformer, from sentences to an answer: trained, exported and served, each for real."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.cli import export
from heedful.export import run
from heedful.export.bundle import export_bundle
from heedful.export.weight_storage import Storage, int8_rows
from heedful.runtime.bundles.bundle import read
from heedful.text.batch import collate
from heedful.text.parse import ParseJob, Parser
from heedful.text.pieces import Pieces
from heedful.training import checkpoint
from heedful.training.errors import RunMissing
from tests.builders import build_parser
from tests.export.test_run import TEXTS, probabilities, train
from tests.transformer import LIMIT, tiny_folder

DIM = 12


TABLE = "embedding.transformer.embeddings.word_embeddings.weight"


def configuration(
    folder: Path, *, lora_rank: int = 0, freeze: tuple[str, ...] = ()
) -> dict[str, object]:
    tiny = str(tiny_folder(folder / "tiny", DIM))
    return {
        "encoder": {"name": "ms-san-bert", "config": {"hidden": 12, "dropout": 0.1}},
        "transformer": {
            "name": tiny,
            "dim": DIM,
            "lora_rank": lora_rank,
            "rate": 1e-2,
        },
        "freeze": freeze,
    }


@pytest.mark.parametrize(
    ("trained_part", "storage"),
    [
        ({}, "small"),
        ({"lora_rank": 2}, "normal"),
        pytest.param({"freeze": ("transformer",)}, "normal", marks=pytest.mark.slow),
    ],
)
def test_a_run_becomes_a_bundle_that_answers_as_the_trained_model(
    tmp_path: Path, trained_part: dict[str, Any], storage: Storage
) -> None:
    frozen = "freeze" in trained_part
    models = tmp_path / "models"
    models.mkdir()
    parser = build_parser(models / "parser")
    folder = train(tmp_path, parser.folder, **configuration(tmp_path, **trained_part))
    assert not (folder / checkpoint.VOCAB).exists()
    trained = run.read(folder)
    stored = checkpoint.best(folder)
    # What was not trained is read from where it came from.
    assert (f"sentence.{TABLE}" in stored) is not bool(trained_part)
    start = tiny_weights(tmp_path / "tiny")
    assert torch.equal(trained.model.state_dict()[TABLE], start) is bool(trained_part)

    card = export_bundle(trained, models / "ms-san-tiny-sst2", storage)
    assert (card.encoder.name, card.dimension, card.tree) == ("ms-san-bert", 2 * DIM, True)
    assert card.training.vectors == f"{tmp_path / 'tiny'}, {'frozen' if frozen else 'fine-tuned'}"
    assert ("int8, large tables int4" in card.parity.against) == (storage == "small")

    assert isinstance(trained.vocab, Pieces)
    assert trained.vocab.limit == LIMIT
    parses = Parser.load(parser.folder).parse([ParseJob(text, 30, True) for text in TEXTS])
    batch = collate([trained.vocab.sentence(parse.tokens, parse.heads) for parse in parses])
    assert batch.pieces is not None
    arrays = (batch.ids, batch.lengths, batch.heads)
    with torch.inference_mode():
        assert trained.head is not None
        vectors = trained.model.eval()(
            *map(torch.from_numpy, arrays), torch.tensor(0.25), torch.from_numpy(batch.pieces)
        )
        expected = trained.head.eval()(vectors).softmax(-1)
    np.testing.assert_allclose(asyncio.run(probabilities(models)), expected, atol=2e-2)


def test_a_run_in_8_bits_over_another_is_exported_without_the_dataset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `adapters/` holds them: rows with scales, without the weights that are the same in the folder beside."""
    parser = build_parser(tmp_path / "parser")
    folder = train(tmp_path, parser.folder, **configuration(tmp_path, lora_rank=2))
    stored = {}
    for name, one in checkpoint.best(folder).items():
        if one.ndim == 2 and one.is_floating_point():
            stored[name], stored[name + checkpoint.SCALE] = int8_rows(one)
        else:
            stored[name] = one.half() if one.is_floating_point() else one
    first, second = (Path(shutil.copytree(folder, tmp_path / "adapters" / name)) for name in "ab")
    for copy in (first, second):
        (copy / checkpoint.BEST).unlink()
    changed = next(name for name in stored if name.startswith("head.") and stored[name].ndim == 2)
    checkpoint.save(first / checkpoint.FORMER_BEST, stored)
    checkpoint.save(
        second / checkpoint.FORMER_BEST, {checkpoint.BASE_RUN: "a", changed: 2 * stored[changed]}
    )
    record = json.loads((second / checkpoint.RECORD).read_text())
    (second / checkpoint.RECORD).write_text(json.dumps({**record, "temperature": 1.5}))

    whole, small = run.read(folder), run.read(second)
    ids, pieces = torch.tensor([[2, 5, 6, 7, 3]]), torch.tensor([[1, 2]])
    arrays = (ids, torch.tensor([2]), torch.tensor([[1, 1]]), torch.tensor(0.25), pieces)
    with torch.inference_mode():
        expected, found = (one.model.eval()(*arrays) for one in (whole, small))
    assert 0 < (found - expected).abs().max() < 0.02 * expected.abs().max()
    bundle, none = tmp_path / "tiny-sst2", tmp_path / "none"
    export.command(second, bundle, "small", int8=False, data=none, parser=str(parser.folder))
    assert "not measured" in capsys.readouterr().err
    card = read(bundle).card
    assert (card.temperature, card.trained) == (1.5, None)
    alone = shutil.copytree(second, tmp_path / "elsewhere" / "b")
    with pytest.raises(RunMissing, match=r"b leaves out weights that .*elsewhere/a holds"):
        run.read(alone)


def tiny_weights(folder: Path) -> torch.Tensor:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]
