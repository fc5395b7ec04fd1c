"""`heedful reparse`, for real: a bundle is bound to another parser, or stays as it was."""

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from heedful.cli import reparse
from heedful.cli.local_model import open_folder
from heedful.cli.quantize import quantize
from heedful.export.bundle_writer import write
from heedful.export.errors import ExportError
from heedful.runtime.bundles.bundle import read
from heedful.text.parse import fingerprint
from tests.builders import BuiltParser

QUIET = Console(file=io.StringIO())


@pytest.fixture
def other(tmp_path: Path, pipeline: BuiltParser) -> Path:
    """The same parser under another name: another fingerprint."""
    folder = tmp_path / "other"
    shutil.copytree(pipeline.folder, folder)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "name": "other"}))
    return folder


def test_a_bundle_reads_another_parser_and_is_measured_again(
    bundle: Path, other: Path, pipeline: BuiltParser, stsb: Path
) -> None:
    before = read(bundle)
    card = reparse.reparse(
        bundle, str(other), instead_of=str(pipeline.folder), data=stsb, console=QUIET
    )
    assert read(bundle).card == card
    assert card.parser.fingerprint == fingerprint(other) != before.card.parser.fingerprint
    assert card.version != before.card.version
    assert card.files == before.card.files
    found = {(score.split, score.metric): score.rows for score in card.scores}
    assert found["dev", "spearman"] == found["test", "spearman"] == 30  # not the old one's
    with open_folder(bundle, str(other)) as model:  # no other parser would be accepted
        assert model.card.parser.name == card.parser.name


def test_what_its_int8_graphs_change_is_measured_again(
    bundle: Path, other: Path, pipeline: BuiltParser, stsb: Path
) -> None:
    card = quantize(bundle, None, data=stsb, parser=str(pipeline.folder), console=QUIET)
    assert card.int8
    held = read(bundle)
    wrong = card.int8.model_copy(update={"float32": 0.1, "int8": 0.2, "cosine": 0.3})
    write(bundle, {**card.fields(), "int8": wrong}, held.files)
    again = reparse.reparse(
        bundle, str(other), instead_of=str(pipeline.folder), data=stsb, console=QUIET
    )
    assert again.int8
    assert again.int8.int8 == card.int8.int8  # the same trees
    # The float graph now holds the matrices that int8 rounded: it is nearer than the one before.
    assert again.int8.float32 == pytest.approx(card.int8.float32, abs=0.05)
    assert card.int8.cosine <= again.int8.cosine <= 1


def test_a_bundle_whose_score_falls_is_left_as_it_was(
    bundle: Path,
    other: Path,
    pipeline: BuiltParser,
    stsb: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {file.name: file.read_bytes() for file in bundle.iterdir()}
    monkeypatch.setattr(reparse, "MAX_LOSS", -1.0)  # no score can rise by as much
    with pytest.raises(ExportError, match=r"stays with its parser: with en_other its spearman"):
        reparse.reparse(
            bundle, str(other), instead_of=str(pipeline.folder), data=stsb, console=QUIET
        )
    assert {file.name: file.read_bytes() for file in bundle.iterdir()} == before
