"""`python -m tools figures` on tiny bundles and a few texts, and the numbers it draws by hand."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from heedful.models.registry import build
from heedful.runtime.service import Options
from tests.builders import BuiltParser, build_bundle
from tests.forests import forest
from tests.process import ROOT
from tools.figure_numbers import (
    masks,
)
from tools.figures import draw


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """What the figures read of R8."""
    file = tmp_path / "data/r8/test.jsonl"
    file.parent.mkdir(parents=True)
    stories = [{"label": label, "text": f"the {label} news"} for label in ("ship", "money-fx") * 4]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in stories))
    return tmp_path / "data"


def test_what_there_is_a_bundle_for_is_drawn_and_the_rest_is_named(
    tmp_path: Path, pipeline: BuiltParser, data: Path
) -> None:
    models, out = tmp_path / "models", tmp_path / "figures"
    lama = {"name": "lama", "config": {}, "parameters": 0, "paper": "none"}
    ratings = ("1", "2", "3", "4", "5")
    for name, labels in (("lama-yelp", ratings), ("lama-r8", ("foreign exchange", "shipping"))):
        build_bundle(models, pipeline, name=name, labels=labels, explain=True, encoder=lama)
    options = Options(models, str(pipeline.folder), threads=1)

    said = io.StringIO()
    made = draw(out, options, data, ROOT / "results", Console(file=said, width=200))
    files = [file.name for file in made]
    assert files == [
        *("lama-words.png", "lama-parameters.png", "lama-loss.png", "lama-heads.png"),
        "learning-curve.png",
    ]
    assert sorted(files) == sorted(file.name for file in out.iterdir())
    assert "ms-san-heads.png: left out, " in said.getvalue()
    assert "has no bundle of MS-SAN for NLI" in said.getvalue()
    assert f"lama-rating-yelp.png: left out, {data} holds no yelp_academic" in said.getvalue()
    assert all(file.stat().st_size < 60_000 for file in made)


@torch.no_grad()
def test_masks_are_ms_sans_where_all_scores_are_alike() -> None:
    encoder = build("ms-san", {"dim": 24}).eval()
    for part in ("query", "key"):
        for parameter in encoder.attention.get_submodule(part).parameters():  # type: ignore[union-attr]
            parameter.zero_()
    heads = forest(np.random.default_rng(0), 9)
    explained = encoder.explain(
        torch.randn(1, 9, 24),
        torch.tensor([9]),
        heads=torch.tensor(heads)[None],
        alpha=torch.tensor(0.7),
    )
    expected = masks(heads, 0.7)
    assert list(explained.maps) == list(expected)
    for name, weights in explained.maps.items():
        np.testing.assert_allclose(weights[0], expected[name], atol=1e-6)
