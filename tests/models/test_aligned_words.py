"""The words that a sentence vector carries, the head that aligns them and the relatedness head, against loops."""

import math
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.models.aligned_words import WORDS, AlignedNLIHead, FirstWords
from heedful.models.heads import NLIHead, RelatednessHead, expected_score
from heedful.models.ms_san import MSSAN
from tests.models.conftest import array
from tests.reference import aligned_words as reference
from tests.reference.arithmetic import Array, softmax

DIM, SIZE = 6, 8
"""Of the sentence, before its words; and of a word."""


def head(*, gated: bool = True) -> AlignedNLIHead:
    torch.manual_seed(0)
    return (
        AlignedNLIHead(DIM + WORDS * SIZE, size=SIZE, gated=gated, hidden=5, dropout=0.5)
        .double()
        .eval()
    )


def vectors(rng: np.random.Generator, *lengths: int) -> Tensor:
    """(B, D): sentences of so many words."""
    found = np.zeros((len(lengths), DIM + WORDS * SIZE))
    for row, length in zip(found, lengths, strict=True):
        row[: DIM + length * SIZE] = rng.normal(size=DIM + length * SIZE)
    return torch.from_numpy(found)


def words(vector: Tensor, length: int) -> list[Array]:
    return list(array(vector)[DIM:].reshape(WORDS, SIZE)[:length])


def layer(module: nn.Module, row: Array) -> Array:
    linear = cast(nn.Linear, module)
    return array(linear.weight) @ row + array(linear.bias)


def perceptron(layers: nn.Sequential, row: Array) -> Array:
    return layer(layers[4], np.maximum(layer(layers[1], row), 0))


@pytest.mark.parametrize("gated", [False, True])
def test_the_head_is_the_reference(gated: bool) -> None:
    rng, model = np.random.default_rng(1), head(gated=gated)
    lengths = (3, 1, WORDS), (5, 2, 7)
    first, second = (vectors(rng, *side) for side in lengths)
    logits = model(first, second)
    whole = NLIHead(DIM, hidden=5).double().eval()
    whole.layers = model.layers
    for row, (a, b) in enumerate(zip(*lengths, strict=True)):
        read = reference.features(
            words(first[row], a),
            words(second[row], b),
            lambda word: layer(model.attend, word),
            lambda features: layer(model.compare[1], features),
        )
        sentences = whole(first[row : row + 1, :DIM], second[row : row + 1, :DIM])
        share = 0.5 if model.gate is None else 1 / (1 + math.exp(-layer(model.gate, read).item()))
        expected = reference.product(array(sentences)[0], perceptron(model.aggregate, read), share)
        np.testing.assert_allclose(softmax(logits[row].tolist()), expected, atol=1e-10)


def test_a_pair_of_nothing_has_finite_logits() -> None:
    nothing = torch.zeros(2, DIM + WORDS * SIZE, dtype=torch.float64)
    assert head()(nothing, nothing).isfinite().all()


def test_a_sentence_carries_its_first_words_and_zeros_where_it_has_none() -> None:
    torch.manual_seed(2)
    carry, x = FirstWords(12, SIZE), torch.randn(3, WORDS + 5, 12)
    lengths = torch.tensor([WORDS + 5, 1, WORDS])
    mask = torch.arange(x.shape[1]) < lengths[:, None]
    carried = carry(x, mask).unflatten(1, (WORDS, SIZE))
    for row, length in enumerate(lengths.clamp(max=WORDS).tolist()):
        torch.testing.assert_close(carried[row, :length], carry.reduce(x[row, :length]))
        assert not carried[row, length:].any()
    torch.testing.assert_close(carry(x[1:2, :1], mask[1:2, :1])[0], carried[1].flatten())


@pytest.mark.parametrize("states", [False, True])
def test_the_words_follow_the_sentence_vector_of_the_paper(states: bool) -> None:
    torch.manual_seed(3)
    sizes: dict[str, Any] = {"dim": 12, "hidden": 7, "cls": True, "max_tokens": 32}
    model = MSSAN(**sizes, first_words=SIZE, first_states=states).eval()
    plain = MSSAN(**sizes).eval()
    plain.load_state_dict(
        {name: one for name, one in model.state_dict().items() if "first_words" not in name}
    )
    x, cls, lengths = torch.randn(2, 4, 12), torch.randn(2, 12), torch.tensor([4, 2])
    heads, alpha = torch.arange(4).repeat(2, 1), torch.tensor(1.0)
    vectors, expected = (one(x, lengths, heads, alpha, cls) for one in (model, plain))
    assert vectors.shape == (2, model.dim)
    torch.testing.assert_close(vectors[:, : plain.dim], expected)
    assert model.first_words is not None
    mask = torch.arange(4) < lengths[:, None]
    explained = model.explain(x, lengths, heads, alpha, cls)
    read = torch.cat([x, explained.states], dim=-1) if states else x
    torch.testing.assert_close(vectors[:, plain.dim :], model.first_words(read, mask))
    torch.testing.assert_close(explained.sentence, vectors)


def test_relatedness_is_the_formula_of_tai_et_al_in_either_order() -> None:
    torch.manual_seed(0)
    relatedness = RelatednessHead(6, hidden=4, dropout=0.5).eval()
    w_1, b_1, w_2, b_2 = map(array, relatedness.parameters())
    a, b = np.random.default_rng(0).normal(size=(2, 3, 6)).astype(np.float32)
    first, second = torch.from_numpy(a), torch.from_numpy(b)
    logits = relatedness(first, second)
    expected = []
    for x, y in zip(a, b, strict=True):
        features = [*map(abs, x - y), *(x * y)]
        hidden = [1 / (1 + math.exp(-value)) for value in w_1 @ features + b_1]
        scores = np.exp(w_2 @ hidden + b_2)
        expected.append(sum((i + 1) * s for i, s in enumerate(scores)) / sum(scores))
    found = expected_score(logits)
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-5)
    assert logits.shape == (3, 5)
    assert ((found >= 1) & (found <= 5)).all()
    torch.testing.assert_close(relatedness(second, first), logits)
