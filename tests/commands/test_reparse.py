"""`heedful reparse`, for real: a bundle is bound to another parser, or stays as it was."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from commands import reparse
from commands.serving import server
from export.bundle import export_bundle
from export.errors import ExportError
from runtime.bundle import read
from runtime.card import ParserCard, ScoreCard
from tests.builders import BuiltParser
from tests.export.trained import trained
from text.parse import fingerprint

QUIET = Console(file=io.StringIO())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """STS-B, as its readers know it: 20 pairs a split."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "stsb").mkdir()
    for split in ("dev", "test"):
        rows = [
            {"a": f"word{n} word3 word{n % 7}", "b": f"word5 word{n + 1}", "score": n / 4}
            for n in range(20)
        ]
        (folder / "stsb" / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture
def bundle(tmp_path: Path, pipeline: BuiltParser) -> Path:
    parser = ParserCard(name=pipeline.name, fingerprint=pipeline.fingerprint)
    old = ScoreCard(dataset="stsb", split="test", metric="spearman", value=0.9, rows=1)
    toy = replace(trained("embedding"), task="embed", parser=parser, scores=(old,))
    export_bundle(toy, tmp_path / "ms-san-toy")
    return tmp_path / "ms-san-toy"


@pytest.fixture
def other(tmp_path: Path, pipeline: BuiltParser) -> Path:
    """The same parser under another name: another fingerprint."""
    folder = tmp_path / "other"
    shutil.copytree(pipeline.folder, folder)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "name": "other"}))
    return folder


def test_a_bundle_reads_another_parser_and_is_measured_anew(
    bundle: Path, other: Path, pipeline: BuiltParser, data: Path
) -> None:
    before = read(bundle)
    card = reparse.reparse(
        bundle, str(other), instead_of=str(pipeline.folder), data=data, console=QUIET
    )
    assert read(bundle).card == card
    assert card.parser.fingerprint == fingerprint(other) != before.card.parser.fingerprint
    assert card.version != before.card.version
    assert card.files == before.card.files
    found = {(score.split, score.metric): score.rows for score in card.scores}
    assert found["dev", "spearman"] == found["test", "spearman"] == 20  # not the old one's
    with server(str(bundle), url="", parser=str(other)) as served:
        assert served.client.get(f"{served.url}/info").json()["parser"]["name"] == card.parser.name


def test_a_bundle_whose_score_falls_is_left_as_it_was(
    bundle: Path,
    other: Path,
    pipeline: BuiltParser,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {file.name: file.read_bytes() for file in bundle.iterdir()}
    monkeypatch.setattr(reparse, "MOST_LOST", -1.0)  # no score can rise by as much
    with pytest.raises(ExportError, match=r"stays with its parser: with en_other its spearman"):
        reparse.reparse(
            bundle, str(other), instead_of=str(pipeline.folder), data=data, console=QUIET
        )
    assert {file.name: file.read_bytes() for file in bundle.iterdir()} == before
