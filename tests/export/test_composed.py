"""A bundle whose unlisted words are composed, in a branch that a batch of listed words skips."""

import numpy as np
import onnx
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

from heedful.export.composed_branch import composed_in_branch
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER
from heedful.runtime.engine.graphs import Feeds, encoder_feeds
from heedful.text.arrays import Floats
from heedful.text.batch import collate
from heedful.text.graph import open_session
from tests.export.trained import ROWS

LISTED = [["word1", "word2", "word7"], ["word3"]]
MIXED = [["word1", "iOS", "word2", "18.2"], ["word3"], ["Привет", "word4", "awesome"]]


def feeds(bundle: Bundle, texts: list[list[str]]) -> Feeds:
    sentences = [bundle.vocab.sentence(text, np.arange(len(text))) for text in texts]
    return encoder_feeds(bundle.card, collate(sentences))


def run(graph: bytes, feeds: Feeds) -> Floats:
    # Without ONNX Runtime's optimizations: they change the last bits of two different graphs differently.
    (found,) = open_session(graph, optimize=False).run(None, feeds)
    return np.asarray(found, np.float32)


@pytest.fixture(scope="module")
def branched(open_words: Bundle) -> bytes:
    model = onnx.load_from_string(open_words.files[ENCODER])
    composed_in_branch(model)
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize("texts", [LISTED, MIXED, [MIXED[0]], [*LISTED, MIXED[2]]])
def test_the_branch_keeps_the_bits(
    open_words: Bundle, branched: bytes, texts: list[list[str]]
) -> None:
    fed = feeds(open_words, texts)
    np.testing.assert_array_equal(run(branched, fed), run(open_words.files[ENCODER], fed))


def test_only_a_batch_with_a_composed_word_looks_features_up(
    open_words: Bundle, branched: bytes
) -> None:
    """Features that are in no table: looking them up is an error."""
    expected = run(open_words.files[ENCODER], feeds(open_words, LISTED))
    listed, mixed = (
        fed | {"features": np.full_like(fed["features"], ROWS + 1)}
        for fed in (feeds(open_words, texts) for texts in (LISTED, MIXED))
    )
    np.testing.assert_array_equal(run(branched, listed), expected)
    with pytest.raises(InvalidArgument, match="out of data bounds"):
        run(branched, mixed)
