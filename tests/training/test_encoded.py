"""Texts that a frozen encoder reads once: the head learns from the vectors that it would give again."""

from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.text.pieces import Pieces
from heedful.training import transformer
from heedful.training.data import Examples
from heedful.training.encoded import encoded
from heedful.training.model import TrainingModel, make_model
from heedful.training.parses import Parsed
from heedful.training.tasks.base import Example
from tests.builders import random_texts
from tests.training.test_transformer import DIM, config
from tests.transformer import tiny_folder

TEXTS = (*random_texts(6), " ".join(["kids"] * 45), " ".join(["dog"] * 41))


def made(folder: Path, encoder: str) -> tuple[TrainingModel, Examples]:
    """A model of which only what the encoder adds for its head is trained, and pairs of texts."""
    run = config(str(tiny_folder(folder, DIM)), encoder=encoder, freeze=("transformer",))
    assert run.transformer is not None
    model = make_model(run, "nli", 3, transformer.load(run.transformer)[0])
    for name, weight in model.sentence.named_parameters():
        weight.requires_grad_("first_words" in name)
    tokens = [text.split() for text in TEXTS]
    parsed = Parsed(
        {text: i for i, text in enumerate(TEXTS)},
        [token for one in tokens for token in one],
        np.concatenate([np.arange(len(one)) for one in tokens]).astype(np.int16),
        np.cumsum([0, *map(len, tokens)]),
    )
    pairs = [Example((TEXTS[i], TEXTS[i - 1]), 0) for i in range(len(TEXTS))]
    return model, Examples.of(pairs, parsed.rows(Pieces.load(folder / "tokenizer.json")))


@pytest.mark.parametrize("encoder", ["ms-san-bert", "ms-san-bert-words"])
def test_they_become_the_vectors_that_the_encoder_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: str
) -> None:
    model, examples = made(tmp_path, encoder)
    rows = encoded(model, examples.rows, tmp_path / "cache", half=False)
    model.eval()
    chosen = np.array([6, 0, 7, 3])
    plain, read = examples.rows.batch(chosen, None), rows.batch(chosen, None)
    expected, found = model.encode(plain), model.encode(read)
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=2e-3)  # they are kept in float16
    for name, weight in model.sentence.named_parameters():
        assert (weight.requires_grad, "first_words" in name) in {(True, True), (False, False)}

    def again(*_: object) -> None:
        raise AssertionError("a text is encoded again")

    monkeypatch.setattr(model, "encode_base", again)
    kept = encoded(model, examples.rows, tmp_path / "cache", half=False)
    np.testing.assert_array_equal(kept.vectors, rows.vectors)
    with torch.no_grad():
        next(one for one in model.sentence.encoder.parameters() if not one.requires_grad).add_(1)
    with pytest.raises(AssertionError, match="again"):  # another encoder's are not taken
        encoded(model, examples.rows, tmp_path / "cache", half=False)
