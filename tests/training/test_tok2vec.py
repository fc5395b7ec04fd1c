"""The words and windows of a spaCy pipeline in torch: spaCy itself is the reference."""

from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from spacy.language import Language

from heedful.text.errors import ParserError
from heedful.text.word_features import pad
from heedful.training import tok2vec
from tests.builders import BuiltParser
from tests.transition import build_transition_parser


@pytest.fixture(scope="module")
def nlp(tmp_path_factory: pytest.TempPathFactory) -> Language:
    return spacy.load(build_transition_parser(tmp_path_factory.mktemp("transition") / "parser"))


def test_words_and_windows_are_spacys(nlp: Language) -> None:
    words = tok2vec.features(nlp, "the pipeline")
    model = tok2vec.head_scorer(nlp, words, 3, "the pipeline").eval()
    docs = [
        nlp.make_doc(text)
        for text in (
            "Two kids wash their hands, they unheard-of Ünïcode do not say 12-04 .",
            "Wash",
        )
    ]
    lengths = np.array([len(doc) for doc in docs])
    features = torch.from_numpy(pad(words(docs), lengths))
    assert (features[..., 0] > 1).sum() >= 4  # words with a static vector
    with torch.inference_mode():
        embedded = model.words(features)
        encoded = model.encode(features, features[..., 0] > 0)
    spacys = nlp.get_pipe("tok2vec").model  # type: ignore[attr-defined]
    for row, expected in enumerate(spacys.layers[0].predict(docs)):
        np.testing.assert_allclose(embedded[row, : lengths[row]], expected, atol=1e-5)
    # spaCy's padding takes part in the windows and ours does not: away from the ends they agree.
    expected = spacys.predict(docs)[0]
    inner = slice(4, -4)
    np.testing.assert_allclose(encoded[0, : lengths[0]][inner], expected[inner], atol=1e-4)


def test_another_pipeline_is_refused(nlp: Language, pipeline: BuiltParser, tmp_path: Path) -> None:
    for other in (spacy.load(pipeline.folder), spacy.blank("en")):
        with pytest.raises(ParserError, match=r"no parser of the shape of training/parser\.cfg"):
            tok2vec.features(other, tmp_path)
