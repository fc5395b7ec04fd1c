"""`heedful compose`, for real: unlisted words are read by their spelling in all graphs, listed ones as before."""

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from heedful.cli import compose
from heedful.cli.local_model import open_folder
from heedful.cli.quantize import quantize
from heedful.export.compose import listed_vectors
from heedful.export.errors import ExportError
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8
from heedful.text.arrays import Floats
from tests.builders import BuiltParser

QUIET = Console(file=io.StringIO())
LISTED = ["word1 word2 word3", "word4"]
UNLISTED = ["word1 iOS word3", "word1 ios word3", "word1 18.2 word3", "word1 你好 word3"]


@pytest.fixture(autouse=True)
def _may_lose(toys_may_lose: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "MAX_LOSS", 1)


def vectors(bundle: Path, parser: str, texts: list[str]) -> Floats:
    with open_folder(bundle, parser) as model:
        return model.embed(texts)


def test_unlisted_words_get_vectors_of_their_own_and_listed_ones_keep_theirs(
    bundle: Path, pipeline: BuiltParser, stsb: Path
) -> None:
    parser = str(pipeline.folder)
    quantize(bundle, None, data=stsb, parser=parser, console=QUIET)
    before, table = read(bundle), listed_vectors(read(bundle))
    listed, unlisted = (vectors(bundle, parser, texts) for texts in (LISTED, UNLISTED))
    np.testing.assert_array_equal(unlisted, unlisted[:1].repeat(len(UNLISTED), axis=0))

    card = compose.compose(bundle, 1, data=stsb, parser=parser, console=QUIET)
    after = read(bundle)
    assert after.card == card
    assert card.composed == compose.ROWS
    changed = {name for name in before.files if before.files[name] != after.files[name]}
    assert changed == {ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8}
    assert table.shape == (len(before.vocab), 24)

    np.testing.assert_allclose(vectors(bundle, parser, LISTED), listed, atol=1e-6)
    together = vectors(bundle, parser, [*UNLISTED, *LISTED])
    alone = np.concatenate([vectors(bundle, parser, [text]) for text in UNLISTED])
    np.testing.assert_allclose(together[: len(UNLISTED)], alone, atol=1e-5)
    apart = np.abs(together[:, None] - together[None]).max(axis=2) + np.eye(len(together))
    assert apart.min() > 1e-5
    with open_folder(bundle, parser) as model:
        found = model.loaded.explain(UNLISTED[0])
    assert found.tokens == [UNLISTED[0].split()]


def test_a_bundle_whose_score_falls_or_whose_words_are_open_is_left_as_it_was(
    bundle: Path, pipeline: BuiltParser, stsb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = str(pipeline.folder)

    def contents() -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in bundle.iterdir()}

    before = contents()
    monkeypatch.setattr(compose, "MAX_LOSS", -3)  # no score can rise by as much
    with pytest.raises(ExportError, match="keeps its closed word list: with composed words its"):
        compose.compose(bundle, 1, data=stsb, parser=parser, console=QUIET)
    assert contents() == before
    monkeypatch.setattr(compose, "MAX_LOSS", 3)
    compose.compose(bundle, 1, data=stsb, parser=parser, console=QUIET)
    before = contents()
    with pytest.raises(ExportError, match="its word list is not closed"):
        compose.compose(bundle, 1, data=stsb, parser=parser, console=QUIET)
    assert contents() == before
