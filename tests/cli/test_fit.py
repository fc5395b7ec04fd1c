"""`heedful fit`, for real: a user's file becomes a bundle, which is served and asked."""

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from heedful.cli.fit import fit_file
from heedful.cli.local_model import open_folder
from heedful.runtime.bundle import read
from heedful.runtime.card import Card
from heedful.training import checkpoint
from heedful.training.errors import ConfigError, DataError
from tests.asking import classify
from tests.builders import BuiltParser

GOOD, BAD = ("good", "great", "fine"), ("bad", "awful", "poor")


def write(file: Path) -> None:
    """800 rows whose label is one word's."""
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["stars", "review"])
        for number in range(800):
            word, stars = (GOOD[number % 3], "five") if number % 2 else (BAD[number % 3], "one")
            writer.writerow([stars, f"a {word} film, {number // 2}"])


def fit(
    tmp_path: Path,
    pipeline: BuiltParser,
    glove: Path,
    console: Console,
    *,
    columns: tuple[str, ...] = ("review",),
    encoder: str = "average",
    out: str = "average-stars",
) -> Card:
    return fit_file(
        tmp_path / "stars.csv",
        columns,
        "stars",
        encoder=encoder,
        word_vectors=str(glove),
        out=tmp_path / "bundles" / out,
        run=tmp_path / "runs" / out,
        parser=str(pipeline.folder),
        seed=1,
        command="heedful fit stars.csv",
        console=console,
    )


def test_a_file_becomes_a_bundle_that_answers(
    tmp_path: Path, pipeline: BuiltParser, glove: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for .cache
    write(tmp_path / "stars.csv")
    shown = io.StringIO()
    card = fit(tmp_path, pipeline, glove, Console(file=shown, width=100))
    bundle = tmp_path / "bundles" / "average-stars"
    assert read(bundle).card == card
    assert (card.kind, card.labels, card.task) == ("classification", ("five", "one"), "stars")
    assert card.training.command == "heedful fit stars.csv"
    scores = {(score.split, score.metric): score for score in card.scores}
    assert scores["test", "accuracy"].value == 1.0
    assert scores["test", "accuracy"].rows == 80
    assert "accuracy 1.0000, macro-F1 1.0000" in shown.getvalue()
    assert "Confusion matrix" in shown.getvalue()
    assert json.loads((tmp_path / "runs/average-stars" / checkpoint.SCORES).read_text())

    with open_folder(bundle, str(pipeline.folder)) as model:
        result = model.run(classify(model.service, ["an awful evening", "great!"]))
    assert [card.labels[i] for i in result.value.argmax(axis=1)] == ["one", "five"]


def test_what_cannot_be_made_is_refused_before_the_training(
    tmp_path: Path, pipeline: BuiltParser, glove: Path
) -> None:
    write(tmp_path / "stars.csv")
    quiet = Console(file=io.StringIO())
    with pytest.raises(ConfigError, match="--out: 'Stars' names no bundle"):
        fit(tmp_path, pipeline, glove, quiet, out="Stars")
    with pytest.raises(ConfigError, match=r"--encoder: 'bert': known are .*ms-san"):
        fit(tmp_path, pipeline, glove, quiet, encoder="bert")
    with pytest.raises(DataError, match=r"stars\.csv: pairs .* entailment, neutral, contradiction"):
        fit(tmp_path, pipeline, glove, quiet, columns=("review", "review"))
    assert not (tmp_path / "runs").exists()
