"""MS-SAN, with its priors, with relative positions and over a transformer, against the references; its sizes."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from heedful.models.ms_san import MSSAN
from heedful.models.pieces import PieceEmbedding
from heedful.models.sentence import SentenceEncoder, word_table
from heedful.text.arrays import Ints
from tests.forests import forest, forests
from tests.models.conftest import array, close, encoded, layers, randomise
from tests.reference import ms_san as reference
from tests.reference import relative
from tests.reference.arithmetic import NONE, Array, Positions
from tests.transformer import tiny_bert
from tools.encoders.ms_san_sep import ms_san_sep
from tools.encoders.relative import Shaw, TransformerXL

PRIORS = [reference.Priors(*switches) for switches in product((True, False), repeat=3)]
DIM, HIDDEN, LONGEST = 12, 7, 24
"""LONGEST is that of `forests`: beyond the distance that Shaw clips at."""


def encoder(**settings: Any) -> MSSAN:
    model = MSSAN(dim=DIM, hidden=HIDDEN, max_tokens=32, **settings)
    randomise(model)
    return model


def without(model: MSSAN, part: str, **settings: Any) -> MSSAN:
    """The same weights, but for those of a part that the paper's encoder has not."""
    plain = encoder(**settings)
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if part not in k})
    return plain


def weights(model: MSSAN) -> reference.Weights:
    attention, gate = model.attention, model.gate
    return reference.Weights(
        query=array(attention.query.weight),
        key=array(attention.key.weight),
        value=array(attention.value.weight),
        output=array(attention.output.weight),
        w_i=array(gate.project_input.weight),
        w_o=array(gate.project_output.weight),
        w_1=array(gate.gate_input.weight),
        w_2=array(gate.gate_output.weight),
        b=array(gate.gate_output.bias),
        feed_forward=layers(model.feed_forward),
        gain=array(model.norm.weight),
        shift=array(model.norm.bias),
        pooling=layers(model.pooling),
    )


def expected(
    x: Array,
    model: MSSAN,
    tree: Ints,
    priors: reference.Priors,
    alpha: float,
    positions: Positions = NONE,
) -> Array:
    known, heads = weights(model), model.attention.num_heads
    return reference.encode(
        reference.tokens(x, known, tree.tolist(), heads, priors, alpha, positions), known
    )


def of_tree(tree: npt.NDArray[np.generic], alpha: float) -> dict[str, Tensor]:
    return {"heads": torch.tensor(tree)[None], "alpha": torch.tensor(alpha)}


@pytest.mark.parametrize("priors", PRIORS, ids=str)
@pytest.mark.parametrize("heads", [6, 12])
def test_encoder_and_its_heads_are_the_references(priors: reference.Priors, heads: int) -> None:
    rng = np.random.default_rng(heads)
    model = encoder(heads=heads, **asdict(priors))
    for length in (1, 2, 3, 5, 9, 14):
        x, tree = rng.normal(size=(length, DIM)), forest(rng, length, roots=0.2)
        alpha = rng.uniform(0, 2)
        close(encoded(model, x, **of_tree(tree, alpha)), expected(x, model, tree, priors, alpha))
    _, maps = reference.attention(x, weights(model), tree.tolist(), heads, priors, alpha)
    shown = model.explain(torch.tensor(x)[None], torch.tensor([length]), **of_tree(tree, alpha))
    close(array(torch.cat(list(shown.maps.values()))), np.array(maps))


def test_a_skip_is_the_words_mean_by_learned_weights() -> None:
    """After the pooled states stands the sum over words of exp(w x + b) x over the sum of exp(w x + b)."""
    model = encoder(dependency=False, skip=True)
    plain = without(model, "words", dependency=False)
    assert model.words is not None
    weight, bias = (array(one).ravel() for one in model.words.score.parameters())
    alpha = torch.tensor(1.0)
    for length in (5, 1, 3):
        x = np.random.default_rng(6).normal(size=(length, DIM))
        found = encoded(model, x, alpha=alpha)
        shares = [np.exp(weight @ token + bias[0]) for token in x]
        mean = sum(share * token for share, token in zip(shares, x, strict=True)) / sum(shares)
        close(found, np.concatenate([encoded(plain, x, alpha=alpha), mean]))
        shown = model.explain(torch.tensor(x)[None], torch.tensor([length]), alpha=alpha)
        close(array(shown.pooling["words"][0]), np.array(shares) / sum(shares))


@settings(max_examples=20)
@given(forests(), st.booleans(), st.booleans(), st.integers(0), st.floats(0, 2))
def test_sep_is_a_forward_and_a_backward_reference(
    tree: Ints, word: bool, dependency: bool, seed: int, alpha: float
) -> None:
    model = ms_san_sep(dim=DIM, hidden=HIDDEN, word=word, dependency=dependency, max_tokens=32)
    randomise(model)
    x = np.random.default_rng(seed).normal(size=(len(tree), DIM))
    known = []
    for part, way in zip(model.encoders, ("forward", "backward"), strict=True):
        assert isinstance(part, MSSAN)
        known.append(expected(x, part, tree, reference.Priors(way, word, dependency), alpha))
    close(encoded(model, x, **of_tree(tree, alpha)), np.concatenate(known))


NAMES = {"shaw": Shaw, "transformer-xl": TransformerXL}
DIRECTIONS = (True, False, "forward", "backward")


def positions(model: MSSAN) -> Positions:
    """The weights of the model's relative positions, its heads in one row."""
    found = model.attention.positions
    if isinstance(found, Shaw):
        keys, values = (array(w.flatten(0, 1)) for w in (found.keys, found.values))
        return relative.Shaw(keys, values, clip=16)
    assert isinstance(found, TransformerXL)
    u, v = (array(w.flatten(0, -2)) for w in (found.content_bias, found.position_bias))
    return relative.TransformerXL(array(found.relative.weight), u, v)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(
    forests(LONGEST), st.sampled_from(DIRECTIONS), st.booleans(), st.integers(0), st.floats(0, 2)
)
def test_relative_positions_are_the_references(
    name: str, tree: Ints, direction: bool | str, masks: bool, seed: int, alpha: float
) -> None:
    priors = reference.Priors(direction, masks, masks)
    model = encoder(positions=NAMES[name], **asdict(priors))
    x = np.random.default_rng(seed).normal(size=(len(tree), DIM))
    known = expected(x, model, tree, priors, alpha, positions(model))
    close(encoded(model, x, **of_tree(tree, alpha)), known)


VOCABULARY, ALPHA = 70, 0.75
Sentence = tuple[Ints, Ints, Ints]  # ids (S,), pieces (L,), heads (L,)


def sentence(rng: np.random.Generator, words: int) -> Sentence:
    pieces = rng.integers(1, 4, words)
    ids = np.array([2, *rng.integers(4, VOCABULARY, pieces.sum()), 3])
    return ids, pieces, forest(rng, words)


def run(
    model: SentenceEncoder, sentences: Sequence[Sentence], noise: np.random.Generator
) -> Tensor:
    """In one batch, padded with anything."""
    lengths = [len(pieces) for _, pieces, _ in sentences]
    B, L, S = len(sentences), max(lengths) + 3, max(len(ids) for ids, _, _ in sentences) + 7
    ids, heads = noise.integers(0, VOCABULARY, (B, S)), np.tile(np.arange(L), (B, 1))
    pieces = np.zeros((B, L), np.int64)
    for row, (one, counts, governors) in enumerate(sentences):
        ids[row, : len(one)] = one
        pieces[row, : len(counts)] = counts
        heads[row, : len(counts)] = governors
    arrays = (torch.from_numpy(array) for array in (ids, np.array(lengths), heads))
    vectors: Tensor = model(*arrays, torch.tensor(ALPHA), torch.from_numpy(pieces))
    return vectors


@pytest.mark.parametrize("place", ["cls", "mean"])
@torch.no_grad()
def test_over_a_transformer_it_is_the_reference_whatever_the_padding(
    place: Literal["cls", "mean"],
) -> None:
    """Words from pieces, and [CLS] or the mean of all pieces; the transformer is transformers' own."""
    rng = np.random.default_rng(0)
    model, transformer = encoder(cls=True), tiny_bert(DIM).double()
    whole = SentenceEncoder(PieceEmbedding(transformer, frozen=False, sentence=place), model).eval()
    sentences = [sentence(rng, words) for words in (5, 1, 17, 2, 30, 17)]
    for row, (ids, pieces, tree) in zip(run(whole, sentences, rng), sentences, strict=True):
        hidden = array(transformer(input_ids=torch.from_numpy(ids)[None]).last_hidden_state[0])
        x, known = reference.word_vectors(hidden, pieces.tolist()), weights(model)
        u = reference.tokens(x, known, tree.tolist(), 6, PRIORS[0], ALPHA)
        other = hidden[0] if place == "cls" else hidden.mean(axis=0)
        close(array(row), reference.encode(u, known, other))


def test_that_which_reads_cls_goes_over_no_table() -> None:
    table = word_table(torch.randn(9, DIM), frozen=True)
    with pytest.raises(ValueError, match="needs a transformer, not a word table"):
        SentenceEncoder(table, MSSAN(dim=DIM, cls=True))
