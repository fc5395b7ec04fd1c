"""MS-SAN over a transformer: words from pieces and [CLS], against loops; the transformer is transformers' own."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.models.ms_san import MSSAN
from heedful.models.pieces import PieceEmbedding
from heedful.models.sentence import SentenceEncoder, word_table
from heedful.text.arrays import Ints
from tests.forests import forest
from tests.models.conftest import array
from tests.models.test_ms_san import weights
from tests.reference import ms_san_bert as reference
from tests.reference.ms_san import Priors
from tests.transformer import tiny_bert, tiny_transformer

DIM, VOCABULARY, ALPHA = 12, 70, 0.7
Sentence = tuple[Ints, Ints, Ints]  # ids (S,), pieces (L,), heads (L,)


def model(*, frozen: bool = False) -> SentenceEncoder:
    encoder = MSSAN(dim=DIM, hidden=7, cls=True, max_tokens=32)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    return SentenceEncoder(tiny_transformer(DIM, frozen=frozen), encoder).eval()


def sentence(rng: np.random.Generator, words: int) -> Sentence:
    pieces = rng.integers(1, 4, words)
    ids = np.array([2, *rng.integers(4, VOCABULARY, pieces.sum()), 3])
    return ids, pieces, forest(rng, words)


def run(
    model: SentenceEncoder, sentences: list[Sentence], noise: np.random.Generator | None = None
) -> Tensor:
    """In one batch, padded with zeros, or with up to seven more of anything where there is `noise`."""
    lengths = [len(pieces) for _, pieces, _ in sentences]
    B, L, S = len(sentences), max(lengths), max(len(ids) for ids, _, _ in sentences)
    ids, heads = np.zeros((B, S), np.int64), np.tile(np.arange(L), (B, 1))
    pieces = np.zeros((B, L), np.int64)
    if noise is not None:
        ids = noise.integers(0, VOCABULARY, (B, S + 7))
        heads, pieces = np.tile(np.arange(L + 3), (B, 1)), np.zeros((B, L + 3), np.int64)
    for row, (one, counts, governors) in enumerate(sentences):
        ids[row, : len(one)] = one
        pieces[row, : len(counts)] = counts
        heads[row, : len(counts)] = governors
    arrays = (torch.from_numpy(array) for array in (ids, np.array(lengths), heads))
    vectors: Tensor = model(*arrays, torch.tensor(ALPHA), torch.from_numpy(pieces))
    return vectors


@torch.no_grad()
def test_it_is_the_reference_over_the_transformer() -> None:
    rng = np.random.default_rng(0)
    both = model().double()
    encoder, transformer = both.encoder, both.embedding.get_submodule("transformer")
    assert isinstance(encoder, MSSAN)
    sentences = [sentence(rng, words) for words in (1, 2, 3, 9, 14)]
    got = run(both, sentences)
    for row, (ids, pieces, heads) in zip(got, sentences, strict=True):
        hidden = transformer(input_ids=torch.from_numpy(ids)[None]).last_hidden_state
        words = array(hidden[0]), pieces.tolist(), weights(encoder), heads.tolist()
        alpha = float(torch.tensor(ALPHA))
        expected = reference.encode(*words, 6, Priors(True, True, True), alpha)
        np.testing.assert_allclose(array(row), expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_batch_is_single_and_padding_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    both = model()
    sentences = [sentence(rng, words) for words in (5, 1, 17, 2, 30, 17)]
    together = run(both, sentences)
    assert together.shape == (6, 2 * DIM)
    for row, one in zip(together, sentences, strict=True):
        torch.testing.assert_close(row, run(both, [one])[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(run(both, sentences, rng), together, atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_mean_of_all_pieces_in_the_place_of_cls() -> None:
    both = model()
    transformer = both.embedding.get_submodule("transformer")
    both.embedding = PieceEmbedding(transformer, frozen=False, sentence="mean").eval()
    rng = np.random.default_rng(3)
    sentences = [sentence(rng, words) for words in (6, 1, 14)]
    for row, (ids, _, _) in zip(run(both, sentences, rng), sentences, strict=True):
        hidden = transformer(input_ids=torch.from_numpy(ids)[None]).last_hidden_state
        torch.testing.assert_close(row[DIM:], hidden[0].mean(0), atol=1e-6, rtol=0)


def test_it_is_fine_tuned_together() -> None:
    both = model().train()
    rng = np.random.default_rng(4)
    run(both, [sentence(rng, words) for words in (1, 6, 13)]).square().sum().backward()
    for key, parameter in both.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        # The bias of a key adds the same to all that a query scores: a softmax does not see it.
        assert parameter.grad.abs().max() > 0 or key.endswith("self.key.bias"), key


def test_frozen_it_neither_learns_nor_drops_out() -> None:
    both = model(frozen=True).train()
    before = copy.deepcopy(both.embedding.state_dict())
    one = sentence(np.random.default_rng(5), 6)
    optimiser = torch.optim.SGD([p for p in both.parameters() if p.requires_grad], lr=0.1)
    first, second = run(both, [one]), run(both, [one])
    assert torch.equal(first, second)  # the encoder's own dropout is 0 here
    first.square().sum().backward()
    optimiser.step()
    after = both.embedding.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert not torch.equal(run(both, [one]), second)
    frozen = both.embedding.get_submodule("transformer")
    assert not any(module.training for module in frozen.modules())
    live = PieceEmbedding(tiny_bert(DIM), frozen=False).train()
    assert live.get_submodule("transformer").training


@torch.no_grad()
def test_any_encoder_goes_over_a_transformer_and_that_which_reads_cls_over_no_table() -> None:
    both = SentenceEncoder(tiny_transformer(DIM), MSSAN(dim=DIM, dependency=False)).eval()
    assert both.inputs == ("alpha", "pieces")
    assert run(both, [sentence(np.random.default_rng(6), 6)]).shape == (1, 2 * DIM)
    table = word_table(torch.randn(9, DIM), frozen=True)
    with pytest.raises(ValueError, match="needs a transformer, not a word table"):
        SentenceEncoder(table, MSSAN(dim=DIM, cls=True))
