"""The exported arc parser is the torch one, alone and in any company."""

from pathlib import Path

import numpy as np
import pytest
import spacy
import torch

from heedful.export.errors import ParityError
from heedful.text.hashed_words import ZERO, WordVectors
from tests.arc_parser import LABELS, TEXTS, plain, random_parser
from tools.parser import pipeline as export
from tools.parser import training
from tools.parser.corpus import Corpus, Reader, single
from tools.parser.model import ArcParser
from tools.parser.training import Trained


@pytest.fixture(scope="module")
def sample() -> Corpus:
    """Texts with trees that are right to the right: each word hangs under the next."""
    corpus = plain(training.blank(), TEXTS)
    for start, stop in zip(corpus.starts, corpus.starts[1:], strict=False):
        corpus.heads[start:stop, 0] = [*range(2, stop - start + 1), 0]
    return Corpus(
        corpus.starts,
        corpus.words,
        corpus.heads,
        np.where(np.arange(4) == 0, 255, corpus.head_shares).astype(np.uint8),
        (corpus.heads % 3 + 1).astype(np.uint8),
        np.where(np.arange(4) == 0, 255, corpus.name_shares).astype(np.uint8),
    )


@pytest.fixture(scope="module")
def trained(sample: Corpus) -> Trained:
    torch.manual_seed(1)
    model = ArcParser(tables=training.TABLES, relations=len(LABELS), width=32, embedding=8)
    reader = Reader(sample, training.TABLES)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(120):
        for texts in single(sample):
            optimiser.zero_grad()
            training.loss(model, reader.batch(texts)).backward()
            optimiser.step()
    assert training.accuracy(model, reader) == (1.0, 1.0)
    return Trained(model.eval(), LABELS, training.blank())


def test_trees_are_what_was_learned_alone_and_together(
    trained: Trained, sample: Corpus, tmp_path: Path
) -> None:
    export.pipeline(trained, sample).to_disk(tmp_path / "parser")
    nlp = spacy.load(tmp_path / "parser")
    for text, doc in zip(TEXTS, nlp.pipe(TEXTS), strict=True):
        heads = [token.head.i for token in doc]
        assert heads == [*range(1, len(doc)), len(doc) - 1]
        alone = nlp(text)
        assert [token.head.i for token in alone] == heads
        assert [token.dep_ for token in alone] == [token.dep_ for token in doc]
        expected = [LABELS[(i + 2) % 3 + 1] for i in range(len(doc) - 1)]
        assert [token.dep_ for token in doc] == [*expected, "ROOT"]


def test_word_vectors_are_torchs_but_for_the_bytes(trained: Trained, sample: Corpus) -> None:
    reader = Reader(sample, training.TABLES)
    batch = reader.batch([[i] for i in range(len(sample))])
    with torch.inference_mode():
        expected = trained.model.words(batch.rows).numpy()
    step = export.measured(trained.model, sample)["window0"]
    vectors = WordVectors(export.words(trained.model, step))
    words = sample.words[:, 2:]
    found = (vectors(words).astype(float) - ZERO) * step
    places = batch.places[batch.places > 0].numpy() - 1  # row by row: in the order of the corpus
    assert np.abs(found - expected[places]).max() < 5 * step
    for i in range(len(words)):  # a word's vector depends on that word alone
        np.testing.assert_array_equal(vectors(words[i : i + 1])[0], vectors(words)[i])


def test_a_graph_that_is_not_torchs_is_refused(
    sample: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = random_parser()
    with pytest.raises(ParityError, match="of the governors are those of floats"):
        export.files(random.model, LABELS, sample, agreeing=1.01)
    monkeypatch.setattr(export, "TOLERANCE", -1.0)
    with pytest.raises(ParityError, match="away from torch"):
        export.files(random.model, LABELS, sample)
