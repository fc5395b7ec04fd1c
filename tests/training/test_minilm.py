"""The vectors of all-MiniLM-L6-v2."""

from typing import Any

import numpy as np
import pytest
import torch

from heedful.training import minilm

TEXTS = [
    "ÄÖÜ ßxq zzyzx qwrtz",  # few characters, many word pieces
    "the government of the country",
    "",
    "word " * 400,
    *["international organisation"] * 40,
]


@pytest.fixture(scope="module")
def loaded() -> minilm.MiniLM:
    return minilm.load()


def test_vectors_stand_in_the_order_of_the_texts(loaded: minilm.MiniLM) -> None:
    vectors = minilm.mean_vectors(loaded, TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    for text, vector in zip(TEXTS[:5], vectors, strict=False):
        with torch.inference_mode():
            alone = minilm.pooled(loaded, [text], minilm.LONGEST)[0].numpy()
        assert np.linalg.norm(vector - alone) < 0.02 * np.linalg.norm(alone)


def test_texts_of_as_many_word_pieces_are_read_together(
    loaded: minilm.MiniLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["the of to a and in" for _ in range(32)] + ["qxz vrz wpk" for _ in range(32)]
    pieces = [len(one) for one in loaded.tokenizer(texts)["input_ids"]]
    assert min(pieces[32:]) > max(pieces[:32])  # fewer characters, more pieces
    shapes = []

    def spied(*inputs: Any, **named: Any) -> Any:
        shapes.append(tuple(named["input_ids"].shape))
        return forward(*inputs, **named)

    forward = loaded.model.forward
    monkeypatch.setattr(loaded.model, "forward", spied)
    minilm.mean_vectors(
        loaded, [text for pair in zip(texts, reversed(texts), strict=True) for text in pair]
    )
    assert sum(rows * longest for rows, longest in shapes) == 2 * sum(pieces)


def test_no_text_gives_no_vector(loaded: minilm.MiniLM) -> None:
    assert minilm.mean_vectors(loaded, []).shape == (0, 384)


def test_half_of_the_precision_moves_no_vector_far(loaded: minilm.MiniLM) -> None:
    texts = ["Two kids wash their hands.", *TEXTS[:2]]
    whole, half = (minilm.unit_vectors(one, texts) for one in (loaded, minilm.load(half=True)))
    assert np.linalg.norm(whole - half, axis=1).max() < 0.03
