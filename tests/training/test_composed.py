"""A run whose unlisted words are composed: it learns, its features are fitted, its misspellings are near."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from heedful.export.run import read
from heedful.models.composed_words import ComposedWords
from heedful.text import composition
from heedful.text.composition import SIGNATURE
from heedful.text.vocab import Vocab
from heedful.training import composed
from heedful.training.config import Paths, RunConfig
from heedful.training.restore import restore
from tests.training.conftest import changed, train

ROWS = 4096
MISSPELT = {
    **{"wonderful": "wonderfull", "terrible": "terible", "adventure": "adventrue"},
    **{"character": "charakter", "beautiful": "beutiful", "screenplay": "screnplay"},
    "tedious": "tedios",
}


def features(*words: str) -> torch.Tensor:
    return torch.from_numpy(composition.matrix(words, ROWS))


def test_a_run_learns_with_composed_words_and_is_restored(config: RunConfig, paths: Paths) -> None:
    words = {"subword_rows": ROWS, "subword_dropout": 0.3}
    record = train(changed(config, words=words), paths)
    assert record["dev"]["value"] == 1.0
    run, cut = restore(paths.run), read(paths.run, words=3)
    assert isinstance(run.lexicon, Vocab)
    assert isinstance(cut.vocab, Vocab)
    assert run.lexicon.composed == ROWS
    assert isinstance(run.model.sentence.embedding, ComposedWords)
    assert cut.vocab.words == run.lexicon.words[:5]
    sixth, ids = features(run.lexicon.words[5]), torch.tensor([[2, -1]])
    assert torch.equal(cut.model.embedding(ids, sixth), run.model.sentence.embedding(ids, sixth))
    with pytest.raises(IndexError):
        cut.model.embedding(torch.tensor([[5]]), sixth)


def test_a_misspelling_is_nearest_to_its_word() -> None:
    torch.manual_seed(0)
    vocab = Vocab(MISSPELT, ROWS)
    table = nn.Embedding(len(vocab), 30, padding_idx=0, sparse=True)
    words = ComposedWords(table, rows=ROWS, signature=SIGNATURE)
    composed.fit_features(words, vocab, seed=1)
    with torch.no_grad():
        found = words.compose(features(*MISSPELT.values()))
        cosines = functional.normalize(found) @ functional.normalize(table.weight[2:]).T
    assert cosines.argmax(1).tolist() == list(range(len(MISSPELT)))


@given(st.text("abcdefgh", min_size=1, max_size=12), st.integers(0, 1000))
def test_a_misspelling_is_one_edit_inside_the_word(word: str, seed: int) -> None:
    edited = composed.misspell(word, random.Random(seed))
    assert abs(len(edited) - len(word)) <= 1
    assert edited[0] == word[0]
    if len(word) < composed.SHORTEST_MISSPELT:
        assert edited == word
