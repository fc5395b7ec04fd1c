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
from heedful.training.errors import DataMissing
from tests.builders import BuiltParser, build_bundle
from tests.forests import forest
from tests.process import ROOT
from tools.figure_numbers import (
    dev_by_heads,
    learning_curve,
    losses,
    masks,
)
from tools.figures import draw

REVIEWS = (
    ("1", "terrible and poor , the worst"),
    ("5", "amazing , i recommend it and am happy"),
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """What the figures read of Yelp and R8."""
    folder = tmp_path / "data"
    reviews = [{"label": label, "text": text} for label, text in REVIEWS * 10]
    stories = [{"label": label, "text": f"the {label} news"} for label in ("ship", "money-fx") * 4]
    for file, rows in {"yelp_10k/all.jsonl": reviews, "r8/test.jsonl": stories}.items():
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def test_what_there_is_a_bundle_for_is_drawn_and_the_rest_is_named(
    tmp_path: Path, pipeline: BuiltParser, data: Path
) -> None:
    models, out = tmp_path / "models", tmp_path / "figures"
    lama = {"name": "lama", "config": {}, "parameters": 0, "paper": "none"}
    ratings = ("1", "2", "3", "4", "5")
    for name, labels in (("lama-yelp", ratings), ("lama-r8", ("money-fx", "ship"))):
        build_bundle(models, pipeline, name=name, labels=labels, explain=True, encoder=lama)
    options = Options(models, str(pipeline.folder), threads=1)

    def drawn() -> tuple[list[str], str]:
        """Files that were written, and what was said."""
        said = io.StringIO()
        files = draw(out, options, data, ROOT / "results", Console(file=said, width=200))
        return [file.name for file in files], said.getvalue()

    files, said = drawn()
    assert files == [
        *("lama-rating-yelp.png", "lama-words.png", "lama-words-yelp.png"),
        *("lama-parameters.png", "lama-loss.png", "lama-heads.png", "learning-curve.png"),
    ]
    assert sorted(files) == sorted(file.name for file in out.iterdir())
    assert "ms-san-heads.png: left out, " in said
    assert "has no bundle of MS-SAN for NLI" in said
    assert all(file.stat().st_size < 60_000 for file in out.iterdir())

    (data / "yelp_10k" / "all.jsonl").unlink()
    files, said = drawn()
    assert not any("yelp" in name for name in files)
    assert f"lama-rating-yelp.png: left out, {data} holds no yelp_academic" in said


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


def test_losses_and_dev_scores_are_those_of_the_records(tmp_path: Path) -> None:
    for read, tables in (
        (losses, "lama-r8, lama-news"),
        (dev_by_heads, "lama-heads, lama-imdb-heads"),
        (learning_curve, "learning-curve"),
    ):
        with pytest.raises(DataMissing, match=f"python -m tools reproduce {tables}"):
            read(tmp_path)
    log = [{"epoch": 1, "loss": 0.9, "dev": 0.5}, {"epoch": 2, "loss": 0.7, "dev": 0.6}]
    records = {
        "lama-r8/lama-seed1": {"row": "LAMA", "log": log},
        "lama-r8/san-seed1": {"row": "SAN"},  # older than logs
        "lama-news/san-seed1": {"row": "SAN", "log": log[:1]},
        "lama-heads/10-heads-seed1": {"row": "10 heads", "log": log},
        "lama-heads/5-heads-seed1": {"row": "5 heads", "log": log[1:]},
        "lama-imdb-heads/1-head-seed1": {"row": "1 head", "log": log[:1]},
    }
    for row, pairs, dev in (("MS-SAN", 105, 0.8), ("MS-SAN", 10, 0.7), ("Bi-LSTM", 10, 0.6)):
        records[f"learning-curve/{row}-{pairs}-seed1"] = {
            "row": f"{row}, {pairs}",
            "data": [{"rows": pairs}],
            "dev": {"value": dev},
        }
    for name, record in records.items():
        file = tmp_path / "runs" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(record))
    assert losses(tmp_path) == {"R8": {"LAMA": [0.9, 0.7]}, "News": {"SAN": [0.9]}}
    by_heads = dev_by_heads(tmp_path)
    assert by_heads == {
        "Yelp": {"5 heads": [0.6], "10 heads": [0.5, 0.6]},
        "IMDB": {"1 head": [0.5]},
    }
    assert list(by_heads["Yelp"]) == ["5 heads", "10 heads"]
    curve = learning_curve(tmp_path)
    assert curve == {"Bi-LSTM": {10: 0.6}, "MS-SAN": {10: 0.7, 105: 0.8}}
    assert list(curve["MS-SAN"]) == [10, 105]
