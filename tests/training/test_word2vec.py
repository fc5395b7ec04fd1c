"""Vectors that a run trains on its own texts."""

import importlib.util
import sys

import numpy as np
import pytest
import torch

from heedful.models.lama import LAMA
from heedful.models.registry import build
from heedful.text.vocab import Vocab
from heedful.training import checkpoint, word2vec
from heedful.training.config import Paths, RunConfig
from heedful.training.errors import ConfigError
from heedful.training.parses import Parsed
from heedful.training.prepare import start_context
from tests.training.conftest import train

with_gensim = pytest.mark.skipif(
    importlib.util.find_spec("gensim") is None, reason="gensim has no wheel for this Python"
)
FRUIT, TOOLS = ("apple", "pear", "plum"), ("Hammer", "saw", "file")


def corpus(seed: int = 0) -> Parsed:
    """Sentences of five words, all fruit or all tools; "rare" occurs in four of them."""
    rng = np.random.default_rng(seed)
    sentences = [[str(word) for word in rng.choice((FRUIT, TOOLS)[i % 2], 5)] for i in range(1500)]
    for sentence in sentences[:4]:
        sentence[0] = "rare"
    tokens = [token for sentence in sentences for token in sentence]
    bounds = np.arange(0, len(tokens) + 1, 5)
    return Parsed({}, tokens, np.zeros(len(tokens), np.int16), bounds)


@with_gensim
def test_texts_of_rare_words_are_refused() -> None:
    rare = Parsed({}, ["apple", "pear"], np.zeros(2, np.int16), np.array([0, 2]))
    with pytest.raises(
        ConfigError, match=r"words\.vectors: word2vec needs words that occur 5 times"
    ):
        word2vec.train([rare], dim=8, seed=1)


@with_gensim
def test_words_in_similar_contexts_have_similar_vectors() -> None:
    table = word2vec.train([corpus()], dim=8, seed=1)
    words = [word.lower() for word in (*FRUIT, *TOOLS)]
    assert table.has([*words, "rare", "Hammer"]).tolist() == [True] * 6 + [False] * 2
    rows = table.look_up(words)
    rows = rows - rows.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T - np.eye(6)
    within = (cosines[:3, :3].sum() + cosines[3:, 3:].sum()) / 12
    assert within > cosines[:3, 3:].mean() + 0.5


def test_without_gensim_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)  # an import of it raises
    with pytest.raises(
        ConfigError, match=r"words\.vectors: word2vec needs gensim, .* Python 3\.13"
    ):
        word2vec.train([corpus()], dim=3, seed=1)


def test_the_context_begins_with_the_mean_over_the_corpus_tokens() -> None:
    encoder = build("lama", {"dim": 3, "hidden": 2, "heads": 2})
    table = torch.randn(5, 3)
    ids = np.array([2, 2, 4, 1, 2])
    start_context(encoder, table, ids)
    assert isinstance(encoder, LAMA)
    assert encoder.context is not None
    expected = np.mean([table[i].numpy() for i in ids], axis=0)
    np.testing.assert_allclose(encoder.context.detach(), expected, rtol=1e-5)
    start_context(build("lama-ctx", {"dim": 3}), table, ids)  # has its document's own


@with_gensim
@pytest.mark.parametrize("encoder", ["lama", "lama-ctx"])
def test_lama_trains_on_its_own_vectors(config: RunConfig, paths: Paths, encoder: str) -> None:
    fields = config.model_dump()
    fields["encoder"] = {"name": encoder, "config": {"hidden": 4, "heads": 3}}
    fields["words"] = {"vectors": "word2vec", "dim": 6, "min_count": 1}
    fields["epochs"] = 2
    train(RunConfig.model_validate(fields), paths)
    weights = checkpoint.best(paths.run)
    assert weights["sentence.embedding.weight"].shape[1] == 6
    assert "movie" in Vocab.load(paths.run / checkpoint.VOCAB).words
    assert ("sentence.encoder.context" in weights) == (encoder == "lama")
