"""The service with an arc parser and a model that composes words: trees and vectors do not depend on the batch."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from heedful.runtime.service import Options, Service
from heedful.text.composition import SIGNATURES
from heedful.text.parse import Parser
from tests.asking import embed, tokenize
from tests.builders import BuiltParser, build_bundle
from tests.runtime.conftest import Running

pytest.importorskip("torch")  # the toy parser is exported here

from tests.arc_parser import build_arc_parser

WORDS = (
    *("Two", "kids", "can't", "wash", "their", "hands", ".", "The", "dog"),
    *("is", "not", "good", "!!", "naïve", "12-04", "unheard"),
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    models: Path = tmp_path_factory.mktemp("arcs")
    loaded = Parser.load(build_arc_parser(models / "parser"))
    parser = BuiltParser(models / "parser", loaded.name, loaded.fingerprint)
    build_bundle(models, parser, max_tokens=64, composed=SIGNATURES + 500)
    with asyncio.Runner() as runner:
        service = Service(Options(models, threads=1))
        runner.run(service.start())
        yield Running(service, runner)
        runner.run(service.stop(timeout=5))


def test_trees_and_vectors_do_not_depend_on_the_batch(running: Running) -> None:
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(1, 40))) for _ in range(150)]
    service = running.service
    together = running.ask(embed(service, texts)).value
    trees = running.ask(tokenize(service, texts)).value

    async def side_by_side() -> list[np.ndarray]:
        answers = await asyncio.gather(*(embed(service, texts[i::7]) for i in range(7)))
        return [answer.value for answer in answers]

    for i, rows in enumerate(running.ask(side_by_side())):
        np.testing.assert_allclose(rows, together[i::7], rtol=0, atol=1e-5)
    for i in range(0, len(texts), 5):
        alone = running.ask(embed(service, [texts[i]])).value
        np.testing.assert_allclose(alone[0], together[i], rtol=0, atol=1e-5)
        (tree,) = running.ask(tokenize(service, [texts[i]])).value
        assert tree.parse.heads.tolist() == trees[i].parse.heads.tolist()
        assert tree.parse.deps == trees[i].parse.deps
    assert any((one.parse.heads != np.arange(len(one.parse))).any() for one in trees)


def test_a_word_of_the_list_is_told_from_one_that_is_composed(running: Running) -> None:
    result = running.ask(tokenize(running.service, ["The unheard dog washes"]))
    (got,) = result.value
    assert got.known.tolist() == [True, False, True, False]
    assert got.composed.tolist() == [False, True, False, True]
    assert result.unlisted == 2
    one, other = running.ask(embed(running.service, ["unheard", "unseen"])).value
    assert np.abs(one - other).max() > 1e-3
