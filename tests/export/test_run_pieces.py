"""A model over a transformer, from sentences to an answer: trained, exported and served, each for real."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.export import run
from heedful.export.bundle import export_bundle
from heedful.export.weight_storage import Storage
from heedful.runtime.service import Options, Service
from heedful.text.batch import collate
from heedful.text.parse import ParseJob, Parser
from heedful.text.pieces import Pieces
from heedful.training import checkpoint
from tests.asking import classify
from tests.builders import build_parser
from tests.export.test_run import TEXTS, train
from tests.transformer import LIMIT, tiny_folder

DIM = 12


def configuration(folder: Path, *, frozen: bool = False) -> dict[str, object]:
    tiny = str(tiny_folder(folder / "tiny", DIM))
    return {
        "encoder": {"name": "ms-san-bert", "config": {"hidden": 12, "dropout": 0.1}},
        "transformer": {
            "name": tiny,
            "dim": DIM,
            "finetune": "none" if frozen else "all",
            "rate": 1e-2,
        },
    }


@pytest.mark.parametrize(
    ("frozen", "storage"), [(False, "small"), pytest.param(True, "normal", marks=pytest.mark.slow)]
)
def test_a_run_becomes_a_bundle_that_answers_as_the_trained_model(
    tmp_path: Path, frozen: bool, storage: Storage
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    parser = build_parser(models / "parser")
    folder = train(tmp_path, parser.folder, **configuration(tmp_path, frozen=frozen))
    assert not (folder / checkpoint.VOCAB).exists()
    trained = run.read(folder)
    before = torch.load(folder / checkpoint.BEST)[
        "sentence.embedding.transformer.embeddings.word_embeddings.weight"
    ]
    start = tiny_weights(tmp_path / "tiny")
    assert torch.equal(before, start) == frozen

    card = export_bundle(trained, models / "ms-san-tiny-sst2", storage)
    assert (card.encoder.name, card.dimension, card.tree) == ("ms-san-bert", 2 * DIM, True)
    assert card.training.vectors == f"{tmp_path / 'tiny'}, {'frozen' if frozen else 'fine-tuned'}"
    assert ("int8, word table int4" in card.parity.against) == (storage == "small")

    async def served() -> np.ndarray:
        service = Service(Options(models=models, device="cpu", threads=1))
        await service.start()
        try:
            return (await classify(service, TEXTS)).value
        finally:
            await service.stop(timeout=5)

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
    np.testing.assert_allclose(asyncio.run(served()), expected, atol=2e-2)


def tiny_weights(folder: Path) -> torch.Tensor:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]
