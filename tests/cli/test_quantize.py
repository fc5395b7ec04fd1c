"""`heedful quantize`, for real: a bundle gets int8 graphs, or stays as it was."""

import io
from pathlib import Path

import pytest
import torch
from rich.console import Console

from heedful.cli.quantize import MIN_COSINE, quantize
from heedful.export.bundle import TrainedModel, export_bundle
from heedful.export.errors import ExportError
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ENCODER_INT8, EXPLAIN_INT8
from heedful.runtime.loaded_model import LoadedModel
from heedful.training.errors import ConfigError
from tests.builders import BuiltParser

QUIET = Console(file=io.StringIO())


def test_a_bundle_gets_int8_graphs_and_a_card_that_says_so(
    bundle: Path, pipeline: BuiltParser, stsb: Path
) -> None:
    before = read(bundle).card
    card = quantize(bundle, None, data=stsb, parser=str(pipeline.folder), console=QUIET)
    assert read(bundle).card == card
    assert {ENCODER_INT8, EXPLAIN_INT8} <= set(card.files)
    assert card.version != before.version
    assert card.int8 is not None
    assert (card.int8.products, card.int8.left) == (12, 0)
    assert (card.int8.dataset, card.int8.metric) == ("stsb", "spearman")
    assert MIN_COSINE <= card.int8.cosine < 1
    found = {(score.split, score.metric): score for score in card.scores}
    assert found["dev", "spearman"].value == card.int8.int8
    assert found["test", "spearman"].rows == 30  # measured again, not the old one
    assert LoadedModel(read(bundle), "cpu", 1).precision == "int8"
    with pytest.raises(ExportError, match="ms-san-toy holds int8 graphs already"):
        quantize(bundle, None, data=stsb, parser=str(pipeline.folder), console=QUIET)


def test_again_makes_the_same_graphs_from_the_weights_that_are_stored(
    bundle: Path, pipeline: BuiltParser, stsb: Path
) -> None:
    parser = str(pipeline.folder)
    first = quantize(bundle, None, data=stsb, parser=parser, console=QUIET)
    before = read(bundle).files
    again = quantize(bundle, None, again=True, data=stsb, parser=parser, console=QUIET)
    assert read(bundle).files == before
    assert again.scores == first.scores
    assert first.int8 is not None
    assert again.int8 is not None
    assert again.int8.cosine > first.int8.cosine  # what it is compared with has rounded weights


def test_a_bundle_that_changes_too_much_is_left_as_it_was(
    toy: TrainedModel,
    tmp_path: Path,
    pipeline: BuiltParser,
    stsb: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A column of weights on a feature that is always zero: harmless, but all others round to nothing."""
    with torch.no_grad():
        toy.model.embedding.get_parameter("weight")[:, 0] = 0
        toy.model.encoder.get_parameter("gate.project_input.weight")[:, 0] = 1000
    out = tmp_path / "ms-san-toy"
    export_bundle(toy, out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    said = r"stays float32: in int8 spearman on stsb dev falls by"
    with pytest.raises(ExportError, match=said):
        quantize(out, None, data=stsb, parser=str(pipeline.folder), console=QUIET)
    monkeypatch.setattr("heedful.cli.quantize.MIN_COSINE", -1.0)
    monkeypatch.setattr("heedful.cli.quantize.MAX_LOSS", -3.0)  # no score can rise by as much
    with pytest.raises(ExportError, match=said):
        quantize(out, None, data=stsb, parser=str(pipeline.folder), console=QUIET)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    with pytest.raises(
        ConfigError, match="task sst2 is of kind classification, ms-san-toy of kind"
    ):
        quantize(out, "sst2", data=stsb, parser=str(pipeline.folder), console=QUIET)
