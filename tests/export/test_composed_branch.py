"""The steps that compose words, in a branch: the same bits, and skipped where a batch has no composed word."""

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
from tests.export.test_composed import TEXTS
from tests.export.trained import ROWS

LISTED = [["word1", "word2", "word7"], ["word3"]]


@pytest.fixture(scope="module")
def branched(open_words: Bundle) -> onnx.ModelProto:
    model = onnx.load_from_string(open_words.files[ENCODER])
    composed_in_branch(model)
    return model


def feeds(bundle: Bundle, texts: list[list[str]]) -> Feeds:
    sentences = [bundle.vocab.sentence(text, np.arange(len(text))) for text in texts]
    return encoder_feeds(bundle.card, collate(sentences))


def run(graph: bytes, feeds: Feeds) -> Floats:
    # Without ONNX Runtime's optimizations: they change the last bits of two different graphs differently.
    (found,) = open_session(graph, optimize=False).run(None, feeds)
    return np.asarray(found, np.float32)


@pytest.mark.parametrize("texts", [LISTED, list(TEXTS), [TEXTS[0]], [*LISTED, TEXTS[3]]])
def test_the_vectors_have_the_same_bits(
    open_words: Bundle, branched: onnx.ModelProto, texts: list[list[str]]
) -> None:
    fed = feeds(open_words, texts)
    expected = run(open_words.files[ENCODER], fed)
    np.testing.assert_array_equal(run(branched.SerializeToString(), fed), expected)


def beyond_the_table(bundle: Bundle, texts: list[list[str]]) -> Feeds:
    """The feeds of the texts, but for features that are in no table: looking them up is an error."""
    fed = feeds(bundle, texts)
    return fed | {"features": np.full_like(fed["features"], ROWS + 1)}


def test_a_batch_of_listed_words_looks_no_feature_up(
    open_words: Bundle, branched: onnx.ModelProto
) -> None:
    found = run(branched.SerializeToString(), beyond_the_table(open_words, LISTED))
    expected = run(open_words.files[ENCODER], feeds(open_words, LISTED))
    np.testing.assert_array_equal(found, expected)


def test_a_batch_with_a_composed_word_looks_them_up(
    open_words: Bundle, branched: onnx.ModelProto
) -> None:
    with pytest.raises(InvalidArgument, match="out of data bounds"):
        run(branched.SerializeToString(), beyond_the_table(open_words, [TEXTS[3]]))


def test_no_step_of_composition_is_left_beside_the_branch(branched: onnx.ModelProto) -> None:
    (branch,) = (node for node in branched.graph.node if node.op_type == "If")
    assert not [node for node in branched.graph.node if "features" in node.input]
    then = next(one.g for one in branch.attribute if one.name == "then_branch")
    assert [node for node in then.node if "features" in node.input]


def test_a_graph_that_composes_none_stays(plain: Bundle) -> None:
    model = onnx.load_from_string(plain.files[ENCODER])
    before = model.SerializeToString(deterministic=True)
    composed_in_branch(model)
    assert model.SerializeToString(deterministic=True) == before
