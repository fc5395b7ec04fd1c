"""The papers' heads, the head that aligns words and the words that a sentence vector carries, against loops."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.models.aligned_words import WORDS, AlignedNLIHead, FirstWords
from heedful.models.heads import NLIHead, RelatednessHead, expected_score
from heedful.models.registry import ENCODERS
from tests.models.conftest import array, close, layers, linear, randomise
from tests.models.test_ms_san import encoder, without
from tests.reference import aligned_words as reference
from tests.reference import arithmetic, dsa
from tests.reference.arithmetic import Array, Function, matching, perceptron, sigmoid, softmax

DIM, SIZE = 6, 8
"""Of the sentence, before its words; and of a word."""


def vectors(rng: np.random.Generator, *lengths: int) -> Tensor:
    """(B, D): sentences of so many words."""
    found = np.zeros((len(lengths), DIM + WORDS * SIZE))
    for row, length in zip(found, lengths, strict=True):
        row[: DIM + length * SIZE] = rng.normal(size=DIM + length * SIZE)
    return torch.from_numpy(found)


def words(vector: Tensor, length: int) -> list[Array]:
    return list(array(vector)[DIM:].reshape(WORDS, SIZE)[:length])


def logits_of(head: nn.Module, features: Array, activation: Function) -> Array:
    norms = [one for one in head.modules() if isinstance(one, nn.BatchNorm1d)]
    if not norms:
        return perceptron(features, layers(head), activation)
    known = []
    for norm in norms:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        kept = norm.running_mean, norm.running_var, norm.weight, norm.bias
        known.append(dsa.Norm(*map(array, kept)))
    return dsa.head(features, known, layers(head))


@pytest.mark.parametrize(
    ("name", "activation", "difference", "hidden"),
    [
        ("ms-san", arithmetic.relu, abs, (1, 1)),
        ("disan", arithmetic.elu, float, (1, 1)),
        ("dsa", None, abs, (2, 1)),
    ],
)
def test_the_papers_heads_are_the_references(
    name: str, activation: Function, difference: Function, hidden: tuple[int, int]
) -> None:
    p, h = np.random.default_rng(3).normal(size=(2, 4, 10))
    nli = ENCODERS[name].nli(10, hidden=6)
    single = ENCODERS[name].classification(10, hidden=6, classes=5)
    for head in (nli, single):
        randomise(head)
    assert (len(layers(nli)) - 1, len(layers(single)) - 1) == hidden
    logits, scores = array(nli(torch.tensor(p), torch.tensor(h))), array(single(torch.tensor(p)))
    for row in range(4):
        features = matching(p[row], h[row], difference)
        close(logits[row], logits_of(nli, features, activation))
        close(scores[row], logits_of(single, p[row], activation))
    assert (logits.shape, scores.shape) == ((4, 3), (4, 5))


@pytest.mark.parametrize("gated", [False, True])
def test_the_head_that_aligns_words_is_the_reference(gated: bool) -> None:
    rng = np.random.default_rng(1)
    model = AlignedNLIHead(DIM + WORDS * SIZE, size=SIZE, gated=gated, hidden=5, dropout=0.5)
    randomise(model, 0.3)
    lengths = (3, 1, WORDS), (5, 2, 7)
    first, second = (vectors(rng, *side) for side in lengths)
    logits = model(first, second)
    whole = NLIHead(DIM, hidden=5).double().eval()
    whole.layers = model.layers
    for row, (a, b) in enumerate(zip(*lengths, strict=True)):
        read = reference.features(
            words(first[row], a),
            words(second[row], b),
            lambda word: perceptron(word, layers(model.attend)),
            lambda features: perceptron(features, layers(model.compare)),
        )
        sentences = array(whole(first[row : row + 1, :DIM], second[row : row + 1, :DIM])[0])
        share = 0.5
        if model.gate is not None:
            share = sigmoid(perceptron(read, [linear(model.gate)]).item())
        aligned = perceptron(read, layers(model.aggregate))
        expected = reference.product(sentences, aligned, share)
        np.testing.assert_allclose(softmax(logits[row].tolist()), expected, atol=1e-10)
    nothing = torch.zeros_like(first)
    assert model(nothing, nothing).isfinite().all()


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
    model = encoder(cls=True, first_words=SIZE, first_states=states)
    plain = without(model, "first_words", cls=True)
    x, cls = torch.randn(2, 4, 12).double(), torch.randn(2, 12).double()
    lengths, heads, alpha = torch.tensor([4, 2]), torch.arange(4).repeat(2, 1), torch.tensor(1.0)
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
    relatedness = RelatednessHead(6, hidden=4, dropout=0.5)
    randomise(relatedness)
    first, second = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 6)))
    logits = relatedness(first, second)
    expected = []
    for x, y in zip(array(first), array(second), strict=True):
        features = np.array([*map(abs, x - y), *(x * y)])
        shares = softmax(perceptron(features, layers(relatedness), sigmoid).tolist())
        expected.append(sum((i + 1) * share for i, share in enumerate(shares)))
    close(array(expected_score(logits)), np.array(expected))
    assert logits.shape == (3, 5)
    torch.testing.assert_close(relatedness(second, first), logits)
