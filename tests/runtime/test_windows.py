"""A text that is too long has the mean of its windows, where that is asked for."""

import numpy as np
import pytest

from heedful.runtime.answers import normalise
from heedful.runtime.engine.windows import MAX_WINDOWS
from heedful.runtime.errors import BadInput
from heedful.text.parse import Parser
from heedful.text.tokenize import MAX_CHUNK
from tests.builders import WORDS
from tests.runtime.conftest import Running

MAX_TOKENS = 16
BOTH = pytest.mark.parametrize("model", ["tiny-flat", "tiny-sst2"])


def words(count: int) -> list[str]:
    return [str(word) for word in np.random.default_rng(0).choice(np.array(WORDS), count)]


@BOTH
def test_the_mean_is_weighted_by_tokens(running: Running, model: str) -> None:
    """A text that fits is as without."""
    document = words(2 * MAX_TOKENS + 5)
    windows = [" ".join(document[i : i + MAX_TOKENS]) for i in range(0, len(document), MAX_TOKENS)]
    parts = running.embed(windows, model, normalize=True).value
    texts = ["dog", "\n".join(document), "kids"]
    result = running.embed(texts, model, mean=True)
    expected = np.average(parts, 0, [MAX_TOKENS, MAX_TOKENS, 5])
    np.testing.assert_allclose(result.value[1], expected, atol=1e-6)
    short = running.embed(["dog", "kids"], model).value
    np.testing.assert_allclose(result.value[[0, 2]], short, atol=1e-6)
    assert (result.inputs, result.tokens) == (3, len(document) + 2)
    assert (result.averaged, result.truncated) == (1, 0)
    unit = running.embed(texts, model, mean=True, normalize=True).value
    np.testing.assert_allclose(unit, normalise(result.value), atol=1e-6)
    fitting = ["dog", " ".join(words(MAX_TOKENS))]
    plain = running.embed(fitting, model, mean=True)
    np.testing.assert_array_equal(plain.value, running.embed(fitting, model).value)
    assert plain.averaged == 0


def test_windows_end_at_white_space(running: Running) -> None:
    """A word and its full stop are two tokens: the sixteenth token is a word without its stop."""
    windows = ["dog, " + "kids. " * 7, "kids. " * 8, "kids. " * 5]
    parts = running.embed(windows, normalize=True).value
    result = running.embed(["".join(windows)], mean=True)
    np.testing.assert_allclose(result.value[0], np.average(parts, 0, [16, 16, 10]), atol=1e-6)


LONG_RUNS = [
    *("x" * (3 * MAX_CHUNK + 1), "," * (MAX_CHUNK + 1), "a.b" * 900),
    "dog " * 30 + "中" * 2000 + " kids",
]


@BOTH
def test_long_runs_without_white_space_have_a_vector(running: Running, model: str) -> None:
    for document in LONG_RUNS:
        result = running.embed([document], model, mean=True)
        assert np.isfinite(result.value).all()
        assert result.averaged == 1


def test_what_has_too_many_windows_is_cut_and_a_long_tree_refused(
    running: Running, parser: Parser
) -> None:
    document = " ".join(["dog kids"] * (MAX_WINDOWS * MAX_TOKENS))
    result = running.embed([document, "dog"], mean=True)
    assert (result.averaged, result.truncated, result.inputs) == (1, 1, 2)
    assert result.tokens < len(document.split())
    (tree,) = parser.parse([" ".join(words(20))], 20, tree=True)
    with pytest.raises(BadInput, match=r"^inputs\[1\] is a tree") as caught:
        running.embed(["dog", tree], mean=True)
    assert caught.value.code == "input_too_long"
