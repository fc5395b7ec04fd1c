"""A bundle of a model that reads pieces: loaded, refused, and served together with one of words."""

import asyncio
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from heedful.export import bundle_writer
from heedful.runtime.bundles import bundle
from heedful.runtime.bundles.card import TOKENIZER
from heedful.runtime.errors import BadInput, BundleError
from heedful.runtime.service import Options, Service
from heedful.text.parse import ParseJob, Parser
from tests.asking import embed, tokenize
from tests.asking import embed as embed_texts
from tests.builders import (
    ALPHA,
    BuiltParser,
    build_bundle,
    build_pieces,
    expected_embedding,
)
from tests.runtime.conftest import Running

NAME, MAX_TOKENS = "tiny-pieces", 16
PIECES = build_pieces()
TEXTS = ["Two kids at a ballgame wash their hands", "unheard", "The dog is not good .", "a"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, built_parser: BuiltParser) -> Path:
    models = tmp_path_factory.mktemp("pieces")
    shutil.copytree(built_parser.folder, models / "parser")
    build_bundle(models, built_parser, name=NAME, pieces=PIECES, cost="quadratic")
    build_bundle(models, built_parser, name="tiny-words")
    return models


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Running]:
    with asyncio.Runner() as runner:
        service = Service(Options(folder, threads=1))
        runner.run(service.start())
        yield Running(service, runner)
        runner.run(service.stop(timeout=5))


def reference(text: str, parser: Parser, words: int | None = None) -> np.ndarray:
    (parse,) = parser.parse([ParseJob(text, MAX_TOKENS, True)])
    parse = parse if words is None else parse.first(words)
    sentence = PIECES.sentence(parse.tokens, parse.heads)
    return expected_embedding(sentence, ALPHA, PIECES)


def test_embed_gives_the_encoder_s_vectors(served: Running, parser: Parser) -> None:
    result = served.ask(embed(served.service, TEXTS, model=NAME))
    expected = [reference(text, parser) for text in TEXTS]
    np.testing.assert_allclose(result.value, expected, atol=1e-6)
    assert (result.tokens, result.unlisted, result.truncated) == (8 + 1 + 6 + 1, 0, 0)


def test_a_text_has_one_vector_whatever_it_is_sent_with(served: Running) -> None:
    rng = np.random.default_rng(0)
    words = ["kids", "ballgame", "unheard", "bad", "wash", ".", "\u200dx"]
    others = [" ".join(rng.choice(words, size=rng.integers(1, 6))) for _ in range(200)]
    ask, embed = served.ask, partial(embed_texts, served.service)
    alone = ask(embed([TEXTS[0]], model=NAME)).value[0]
    among = ask(embed([*others, TEXTS[0]], model=NAME)).value[-1]
    np.testing.assert_allclose(among, alone, atol=1e-5)


def test_tokens_are_words_with_the_id_of_their_first_piece(served: Running) -> None:
    result = served.ask(tokenize(served.service, ["the ballgame 中文 dog"], model=NAME))
    (got,) = result.value
    assert got.parse.tokens == ("the", "ballgame", "中文", "dog")
    ids, _ = PIECES.split(["the", "ball", "dog"])
    assert got.ids.tolist() == [ids[0], ids[1], 1, ids[2]]
    assert got.known.tolist() == [True, True, False, True]
    assert result.unlisted == 1


def test_a_text_of_too_many_pieces_is_refused_or_cut_behind_a_word(
    served: Running, parser: Parser
) -> None:
    ask, service = served.ask, served.service
    full = "unheard " * 5 + "a a a"  # 38 pieces
    assert ask(embed(service, [full], model=NAME)).truncated == 0
    longer = "unheard " * 6 + "dog"
    said = r"inputs\[1\] has more than 40 word pieces and is longer .* \(16 tokens, 40 word pieces"
    with pytest.raises(BadInput, match=said) as caught:
        ask(embed(service, [full, longer], model=NAME))
    assert caught.value.code == "input_too_long"
    result = ask(embed(service, [longer, full], model=NAME, truncate=True))
    assert (result.truncated, result.tokens) == (1, 5 + 8)
    np.testing.assert_allclose(result.value[0], reference(longer, parser, 5), atol=1e-6)
    assert ask(embed(service, [longer], model="tiny-words")).truncated == 0


def test_a_limit_beyond_the_graph_s_is_refused(folder: Path, tmp_path: Path) -> None:
    """The graph has places for 40 pieces."""
    card = bundle.read(folder / NAME).card
    files: dict[str, Path | bytes] = {name: folder / NAME / name for name in card.files}
    fields = card.fields()
    for limit in (3, 40):
        files[TOKENIZER] = build_pieces(limit).text.encode()
        bundle_writer.write(tmp_path / NAME, fields, files)
    files[TOKENIZER] = build_pieces(41).text.encode()
    with pytest.raises(BundleError, match=r"encoder\.onnx: does not run on ids \(1, 41\)"):
        bundle_writer.write(tmp_path / NAME, fields, files)
