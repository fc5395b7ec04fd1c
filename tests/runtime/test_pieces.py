"""A bundle of a model that reads pieces: its vectors, and texts that are too long for it."""

import shutil
from collections.abc import Iterator

import numpy as np
import pytest

from heedful.runtime.errors import BadInput
from heedful.runtime.service import Options
from heedful.text.parse import Parser
from tests.builders import ALPHA, BuiltParser, build_bundle, build_pieces, expected_embedding
from tests.runtime.conftest import Running, run

NAME, MAX_TOKENS = "tiny-pieces", 16
PIECES = build_pieces()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, pipeline: BuiltParser) -> Iterator[Running]:
    models = tmp_path_factory.mktemp("pieces")
    shutil.copytree(pipeline.folder, models / "parser")
    build_bundle(models, pipeline, name=NAME, pieces=PIECES, cost="quadratic")
    with run(Options(models, threads=1)) as served:
        yield served


def reference(text: str, parser: Parser, words: int | None = None) -> np.ndarray:
    (parse,) = parser.parse([text], MAX_TOKENS, tree=True)
    parse = parse if words is None else parse.first(words)
    return expected_embedding(PIECES.sentence(parse.tokens, parse.heads), ALPHA, PIECES)


def test_embed_gives_the_encoder_s_vectors(served: Running, parser: Parser) -> None:
    """A text's vector does not depend on the others in its request."""
    texts = ["Two kids at a ballgame wash their hands", "unheard", "The dog is not good .", "a"]
    result = served.embed(texts, NAME)
    expected = [reference(text, parser) for text in texts]
    np.testing.assert_allclose(result.value, expected, atol=1e-6)
    assert (result.tokens, result.unlisted, result.truncated) == (8 + 1 + 6 + 1, 0, 0)
    rng = np.random.default_rng(0)
    words = ["kids", "ballgame", "unheard", "bad", "wash", ".", "\u200dx"]
    others = [" ".join(rng.choice(words, size=rng.integers(1, 6))) for _ in range(200)]
    among = served.embed([*others, *texts], NAME).value[-4:]
    np.testing.assert_allclose(among, expected, atol=1e-5)


def test_a_text_of_too_many_pieces_is_refused_or_cut_behind_a_word(
    served: Running, parser: Parser
) -> None:
    full, longer = "unheard " * 5 + "a a a", "unheard " * 6 + "dog"  # 38 pieces, and more
    assert served.embed([full], NAME).truncated == 0
    reason = r"inputs\[1\] has more than 40 word pieces and is longer .* \(16 tokens, 40 word piece"
    with pytest.raises(BadInput, match=reason) as caught:
        served.embed([full, longer], NAME)
    assert caught.value.code == "input_too_long"
    result = served.embed([longer, full], NAME, truncate=True)
    assert (result.truncated, result.tokens) == (1, 5 + 8)
    np.testing.assert_allclose(result.value[0], reference(longer, parser, 5), atol=1e-6)
