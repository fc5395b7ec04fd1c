"""`heedful centre`, for real: every graph's vectors are less by a share of their mean, or as they were."""

import io
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

from heedful.cli import centre
from heedful.cli.local_model import open_folder
from heedful.cli.quantize import quantize
from heedful.export.bundle import TrainedModel, export_bundle
from heedful.export.centring import mean_cosine, offset
from heedful.export.errors import ExportError
from heedful.models.sentence import SentenceEncoder
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8
from heedful.text.arrays import Floats
from heedful.training.errors import ConfigError
from tests.builders import BuiltParser, build_bundle
from tests.cli.test_repack import vectors as graph_vectors
from tests.export.trained import DIM, WORDS

QUIET = Console(file=io.StringIO())
GRAPHS = (ENCODER, ENCODER_INT8)
RNG = np.random.default_rng(2)
TEXTS = [" ".join(f"word{i}" for i in RNG.integers(0, WORDS - 2, 8)) for _ in range(40)]


@pytest.fixture(scope="module")
def exported_projected(toy: TrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    whole = SentenceEncoder(toy.model.embedding, toy.model.encoder, nn.Linear(2 * DIM, DIM))
    folder = tmp_path_factory.mktemp("exported") / "projected"
    export_bundle(replace(toy, model=whole), folder)
    return folder


@pytest.fixture
def projected(exported_projected: Path, tmp_path: Path) -> Path:
    """The bundle of `toy` with a projection, which a trained embedding has."""
    return shutil.copytree(exported_projected, tmp_path / "projected")


def vectors(bundle: Path, parser: str) -> Floats:
    with open_folder(bundle, parser) as model:
        return model.loaded.encode(TEXTS, normalize_embeddings=False)


def test_the_mean_cosine_is_that_of_all_pairs_and_falls_to_what_is_asked() -> None:
    rows = RNG.normal(size=(30, 5)).astype(np.float32) + 1
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    pairs = (unit @ unit.T)[~np.eye(30, dtype=bool)]
    assert mean_cosine(rows) == pytest.approx(pairs.mean(), abs=1e-6)
    by = offset(rows, 0.1)
    assert mean_cosine(rows - by) == pytest.approx(0.1, abs=1e-5)
    share = by / rows.mean(axis=0)
    assert 0 < share[0] < 1
    np.testing.assert_allclose(share, share[0], rtol=1e-4)
    with pytest.raises(ExportError, match=r"is 0\.\d+, and -?0\.\d+ without their mean: name one"):
        offset(rows, 0.99)


@pytest.mark.usefixtures("toys_may_lose")
def test_every_graph_is_shifted(
    projected: Path, pipeline: BuiltParser, stsb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = str(pipeline.folder)
    quantize(projected, None, data=stsb, parser=parser, console=QUIET)
    monkeypatch.setattr(centre, "MAX_LOSS", 1)
    old = {graph: graph_vectors(projected, graph) for graph in GRAPHS}
    plain = vectors(projected, parser)
    aim = mean_cosine(plain) / 2
    card = centre.centre(projected, TEXTS, aim, data=stsb, parser=parser, console=QUIET)
    assert read(projected).card == card
    assert mean_cosine(vectors(projected, parser)) == pytest.approx(aim, abs=1e-4)
    for graph in GRAPHS:
        shift = old[graph] - graph_vectors(projected, graph)
        np.testing.assert_allclose(shift, np.tile(offset(plain, aim), (len(shift), 1)), atol=1e-5)


def test_a_bundle_whose_score_falls_or_that_has_no_projection_is_left_as_it_was(
    bundle: Path,
    projected: Path,
    pipeline: BuiltParser,
    stsb: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parser = str(pipeline.folder)
    monkeypatch.setattr(centre, "MAX_LOSS", -1.0)  # no score can rise by as much
    for folder, reason in (
        (projected, "keeps its mean: without it its spearman on stsb"),
        (bundle, "ms-san-toy has no projection"),
    ):
        aim = mean_cosine(vectors(folder, parser)) / 2
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        with pytest.raises(ExportError, match=reason):
            centre.centre(folder, TEXTS, aim, data=stsb, parser=parser, console=QUIET)
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_only_an_embedding_is_centred(tmp_path: Path, pipeline: BuiltParser) -> None:
    build_bundle(tmp_path, pipeline, name="tiny-sst2")
    with pytest.raises(ConfigError, match="tiny-sst2 is of kind classification: only an embedding"):
        centre.command([tmp_path / "tiny-sst2"])
