"""Models that read no trees: no pipeline is installed, loaded or mentioned, and their words are the same."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.runtime.answers import TokenizedText
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, Service, running
from tests.shipped import BUNDLES, SHIPPED
from tests.text.test_pipeline import hostile_texts

FLAT = [name for name in SHIPPED if not read_card(BUNDLES / name).tree]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models without a parser; the working directory has none either."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "models"
    folder.mkdir()
    for name in FLAT:
        (folder / name).symlink_to(BUNDLES / name)
    return folder


async def tokenize(service: Service, texts: Sequence[str]) -> list[TokenizedText]:
    inputs = Inputs.from_texts(texts)
    return (await service.answer(service.bind("embed").tokenize(inputs, truncate=True))).value


def test_the_service_answers_and_reads_the_same_words(
    models: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [f"Two {text}" for text in hostile_texts()[:150]]

    async def ask(options: Options) -> tuple[Any, list[TokenizedText]]:
        async with running(options) as service:
            moved = await service.self_test()
            return (service.parser, moved, service.ready()), await tokenize(service, texts)

    with caplog.at_level(logging.DEBUG):
        (info, without) = asyncio.run(ask(Options(models)))
    assert info == (None, {}, None)
    assert "parser" not in caplog.text
    (info, parsed) = asyncio.run(ask(Options(models, parser=str(BUNDLES / "parser"))))
    assert info[0]["name"] == "en_heedful_arcs"
    for plain, other in zip(without, parsed, strict=True):
        assert plain.parse.tokens == other.parse.tokens
        assert tuple(plain.parse.starts) == tuple(other.parse.starts)
        assert plain.ids.tolist() == other.ids.tolist()
        assert plain.parse.heads.tolist() == list(range(len(plain.parse)))
        assert set(plain.parse.deps) == {"ROOT"}


def test_a_bundle_that_reads_trees_is_refused_by_a_reload_and_named(models: Path) -> None:
    async def scenario() -> tuple[str, ...]:
        async with running(Options(models)) as service:
            (models / "ms-san-sst2").symlink_to(BUNDLES / "ms-san-sst2")
            return (await service.reload()).refused

    (reason,) = asyncio.run(scenario())
    assert "ms-san-sst2" in reason
    assert "but none is loaded" in reason


def test_the_library_loads_none(models: Path) -> None:
    with heedful.load(FLAT[0], models=models) as model:
        assert model.encode("Two kids wash their hands.").shape == (model.card.dimension,)
        model.check_golden()
        [sentence] = model.explain("Two kids").answer["sentences"]
        assert [token["head"] for token in sentence["tokens"]] == [0, 1]
