"""The exported head scorer is the torch one, alone and in any company."""

from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from rich.console import Console

from heedful.export import head_scorer as export
from heedful.export.errors import ParityError
from heedful.text.arborescence import best_heads
from heedful.text.structure import check_heads
from heedful.text.word_features import pad
from heedful.training import head_scorer, tok2vec
from heedful.training.head_scorer import Example, Trained
from tests.transition import build_transition_parser

TEXTS = (
    "Two kids wash their hands",
    "The dog",
    "Wash",
    "Their unheard-of hands are not good, and the dog is 12-04 years old (or so they say).",
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A few steps on three texts with trees that are right to the right: each word hangs under the next."""
    nlp = spacy.load(build_transition_parser(tmp_path_factory.mktemp("transition") / "parser"))
    words = tok2vec.features(nlp, "tiny")
    model = tok2vec.head_scorer(nlp, words, 3, "tiny")
    texts = []
    for text in TEXTS[:3]:
        features = words([nlp.make_doc(text)])
        heads = np.append(np.arange(2, len(features) + 1), 0)
        texts.append(Example(features, heads, np.where(heads, heads % 3, head_scorer.IGNORED)))
    head_scorer.train(model, texts, texts, seed=1, console=Console(), epochs=(200, 100))
    assert head_scorer.accuracy(model, texts) == (1.0, 1.0)
    return Trained(model.eval(), words, ("det", "nsubj", "obj"))


def test_trees_are_torchs_alone_and_together(trained: Trained, tmp_path: Path) -> None:
    export.pipeline(trained).to_disk(tmp_path / "parser")
    nlp = spacy.load(tmp_path / "parser")
    together = list(nlp.pipe(TEXTS))
    for text, doc in zip(TEXTS, together, strict=True):
        alone = nlp(text)
        heads = [token.head.i for token in alone]
        assert [token.head.i for token in doc] == heads
        assert [token.dep_ for token in doc] == [token.dep_ for token in alone]
        check_heads(np.array(heads))
        features = torch.from_numpy(pad(trained.words([alone]), np.array([len(alone)])))
        with torch.inference_mode():
            scores, *_ = trained.model(features)
        (best,) = best_heads(scores.numpy(), np.array([len(alone)]))
        assert heads == [i if head == 0 else head - 1 for i, head in enumerate(best.tolist())]
    first = together[0]
    assert [token.head.i for token in first] == [1, 2, 3, 4, 4]
    assert [token.dep_ for token in first] == ["obj", "det", "nsubj", "obj", "ROOT"]


def test_company_and_padding_change_no_score(trained: Trained) -> None:
    nlp = spacy.blank("en")
    docs = [nlp.make_doc(text) for text in TEXTS]
    lengths = np.array([len(doc) for doc in docs])
    with torch.inference_mode():
        together = trained.model(torch.from_numpy(pad(trained.words(docs), lengths)))
        for row, doc in enumerate(docs):
            alone = trained.model(torch.from_numpy(trained.words([doc]))[None])
            n = len(doc)
            torch.testing.assert_close(
                together[0][row, :n, : n + 1], alone[0][0], atol=1e-5, rtol=1e-5
            )
            for found, expected in zip(together[1:], alone[1:], strict=True):
                torch.testing.assert_close(found[row, :n], expected[0], atol=1e-5, rtol=1e-5)
            assert (together[0][row, :n, n + 1 :] < -1e3).all()


def test_a_graph_that_is_not_torchs_is_refused(
    trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "TOLERANCE", -1.0)
    with pytest.raises(ParityError, match="away from torch"):
        export.files(trained)
