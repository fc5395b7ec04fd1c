"""A model over a transformer, from sentences to an answer: trained, exported and served, each for real."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.cli import compact, export
from heedful.cli.errors import CommandError
from heedful.export import run
from heedful.export.bundle import export_bundle
from heedful.export.weight_storage import Storage
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
    assert ("int8, word table int4" in card.parity.against) == (storage == "small")

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


def test_a_compact_run_becomes_nearly_the_same_bundle_calibrated_without_the_dataset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = build_parser(tmp_path / "parser")
    folder = train(tmp_path, parser.folder, **configuration(tmp_path, lora_rank=2))
    none, pipeline = tmp_path / "none", str(parser.folder)
    compact.command(folder, tmp_path / "adapters" / "tiny", data=tmp_path, parser=pipeline)
    whole, small = run.read(folder), run.read(tmp_path / "adapters" / "tiny")
    assert isinstance(small.vocab, Pieces)
    assert isinstance(whole.vocab, Pieces)
    assert small.vocab.text == whole.vocab.text
    ids, pieces = torch.tensor([[2, 5, 6, 7, 3]]), torch.tensor([[1, 2]])
    arrays = (ids, torch.tensor([2]), torch.tensor([[1, 1]]), torch.tensor(0.25), pieces)
    with torch.inference_mode():
        expected, found = (one.model.eval()(*arrays) for one in (whole, small))
    assert 0 < (found - expected).abs().max() < 0.02 * expected.abs().max()
    bundle = tmp_path / "tiny-sst2"
    export.command(tmp_path / "adapters" / "tiny", bundle, "small", data=none, parser=pipeline)
    assert "not calibrated" not in capsys.readouterr().err
    assert whole.temperature is None
    assert small.temperature not in (None, 1.0)
    assert read(bundle).card.temperature == small.temperature

    again_folder = tmp_path / "adapters" / "again"
    compact.command(tmp_path / "adapters" / "tiny", again_folder, data=none, parser=pipeline)
    assert "no temperature was fitted: " in capsys.readouterr().err
    kept = tmp_path / "notes" / "thesis.docx"
    kept.parent.mkdir()
    kept.write_text("years of work")
    for out, said in ((kept.parent, "holds no run.json"), (folder, "is the run itself")):
        with pytest.raises(CommandError, match=said):
            compact.command(folder, out)
    assert kept.read_text() == "years of work"
    again = run.read(again_folder)
    assert again.temperature == small.temperature, "the adapter's, since none could be fitted"
    weights = again.model.state_dict()
    for name, one in small.model.state_dict().items():
        torch.testing.assert_close(weights[name], one, atol=1e-3, rtol=1e-2)


def test_a_compact_run_over_another_holds_only_what_differs(tmp_path: Path) -> None:
    parser = build_parser(tmp_path / "parser")
    first = train(tmp_path, parser.folder, **configuration(tmp_path, lora_rank=2))
    second = Path(shutil.copytree(first, tmp_path / "second"))
    weights = checkpoint.best(first)
    changed = next(name for name in weights if name.startswith("head.") and weights[name].ndim == 2)
    weights[changed] = weights[changed] + torch.eye(*weights[changed].shape)
    checkpoint.save_best(second, weights)

    out, none, pipeline = tmp_path / "adapters", tmp_path / "none", str(parser.folder)
    compact.command(first, out / "first", data=none, parser=pipeline)
    compact.command(second, out / "whole", data=none, parser=pipeline)
    compact.command(second, out / "over", over=out / "first", data=none, parser=pipeline)
    stored = checkpoint.load(out / "over" / checkpoint.FORMER_BEST)
    assert set(stored) == {checkpoint.OVER, changed, changed + checkpoint.SCALE}
    compact.command(second, out / "twice", over=out / "over", data=none, parser=pipeline)
    assert set(checkpoint.load(out / "twice" / checkpoint.FORMER_BEST)) == {checkpoint.OVER}
    whole = checkpoint.best(out / "whole")
    for folder in ("over", "twice"):
        found = checkpoint.best(out / folder)
        assert found.keys() == whole.keys()
        for name, one in whole.items():
            assert torch.equal(found[name], one)
    for base in (first, out / "over"):
        with pytest.raises(CommandError, match=r"--over: .* is not beside .*over"):
            compact.command(second, out / "over", over=base)
    alone = shutil.copytree(out / "over", tmp_path / "elsewhere" / "over")
    with pytest.raises(RunMissing, match=r"over leaves out weights that .*elsewhere/first holds"):
        run.read(alone)


def tiny_weights(folder: Path) -> torch.Tensor:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]
