"""`heedful fit`, for real: a user's file becomes a bundle and a report; and which candidate it chooses."""

import io
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import heedful
from heedful.cli.fit_candidate import Candidate, Problem, best
from heedful.cli.fit_report import Report
from heedful.cli.fit_run import FitOptions, fit_rows
from heedful.library.model import Model
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import Card
from heedful.training import contrastive
from heedful.training.assess import HeldOut
from heedful.training.errors import DataError
from heedful.training.labelled_texts import Labelled, Reading, Row
from heedful.training.linear import Recipe
from tests.builders import BuiltParser, build_bundle
from tests.cli.conftest import Command, write_glove
from tests.transformer import tiny_encoder
from tests.writing import put, table

GOOD, BAD = ("good", "great", "fine"), ("bad", "awful", "poor")
Rows = list[tuple[str, str]]


def rows(count: int) -> Rows:
    """Two of each text; the label is one word's."""
    kinds = (BAD, "one"), (GOOD, "five")
    words = [(kinds[i % 2], i) for i in range(count // 2) for _ in range(2)]
    return [(stars, f"a {some[i % 3]} film, {i}") for (some, stars), i in words]


def write(file: Path, content: Rows, header: tuple[str, str] = ("stars", "review")) -> Path:
    file.write_text(table(header, *content))
    return file


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory, pipeline: BuiltParser) -> FitOptions:
    """Options over a tiny embedding bundle, whose vectors do not tell the labels apart."""
    folder = tmp_path_factory.mktemp("fit")
    bundles = folder / "bundles"
    build_bundle(bundles, pipeline, name="tiny-embed", kind="embedding", explain=True, int8=True)
    return FitOptions(
        out=bundles / "stars",
        base=bundles / "tiny-embed",
        parser=str(pipeline.folder),
        encoder="average",
        word_vectors=str(write_glove(folder)),
        reading=Reading(say=lambda _: None),
        command="heedful fit stars.csv",
    )


def fit(file: Path, options: FitOptions, *columns: str) -> tuple[Card, dict[str, Any], str]:
    """The card, report.json, and what was printed."""
    shown = io.StringIO()
    given = Labelled.of(file, columns or ("review",), "stars", options.reading, options.test)
    card = fit_rows(given, options, Console(file=shown, width=160))
    return card, json.loads((options.out / "report.json").read_text()), shown.getvalue()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No command leaves anything in the folder that it is called in."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    yield
    assert not list(here.iterdir())


def load(options: FitOptions) -> Model:
    return heedful.load(options.out, parser=options.parser)


def test_few_rows_end_in_a_bundle_and_a_report(tmp_path: Path, options: FitOptions) -> None:
    long = [("one", f"a film {'so ' * 14}bad"), ("five", f"a film {'so ' * 14}good")]
    few = [*rows(64), ("five", "an awful awful film"), *long]  # the tiny bundle reads 16 tokens
    test = write(tmp_path / "test.csv", [("five", "great"), ("one", "poor"), ("two", "so")])
    options = replace(options, test=test)
    card, report, shown = fit(write(tmp_path / "stars.csv", few), options)
    assert read(options.out).card == card
    assert (card.kind, card.labels, card.task) == ("classification", ("five", "one"), "stars")
    assert card.training.command == "heedful fit stars.csv"
    with load(options) as model:
        assert model.predict(["awful evening", "great!"]).tolist() == ["one", "five"]
    (score,) = card.scores
    assert (score.rows, score.split) == (67, "held out, 5 parts")

    kinds = ("TF-IDF", "frozen vectors", "TF-IDF + frozen vectors")
    names = [one["name"] for one in report["candidates"]]
    assert names == [f"{kind} + LR, C {strength}" for kind in kinds for strength in (1, 10)]
    (chosen,) = [one for one in report["candidates"] if one["chosen"]]
    assert chosen["score"] == score.value >= 0.95
    assert chosen["low"] < chosen["score"] < chosen["high"]
    assert f"{chosen['name']} *" in shown
    wrong = {"line": 66, "text": "an awful awful film", "label": "five", "answer": "one"}
    assert report["suspects"][0] == wrong
    assert np.trace(report["confusion"]) / 67 == pytest.approx(chosen["score"])
    for label, words in (("five", GOOD), ("one", BAD)):
        assert set(words) <= set(report["words"][label])
        assert all(word.isalnum() for word in " ".join(report["words"][label]).split())
    assert [(one["label"], one["rows"]) for one in report["classes"]] == [("five", 34), ("one", 33)]
    tested = report["test"]
    assert tested["score"] == pytest.approx(2 / 3)
    assert (tested["unknown_labels"], tested["log_loss"]) == (["two"], None)
    assert report["skipped"][0]["why"].startswith("fewer than 500 rows")
    assert "labels that no training row has, which count as wrong: two" in shown
    assert report["truncated"] == {"rows": 2, "max_tokens": 16}
    assert "trained on too" not in shown
    assert "32 of the 67 rows repeat the text of another row" in shown.replace("\n", " ")
    page = (options.out / "report.html").read_text()
    cut = "2 rows (3%) are longer than 16 tokens: no candidate reads the rest of them"
    assert cut in shown
    titles = ("Words that decide", "an awful awful film", "Wilson", "which count as wrong: two")
    assert all(title in page for title in (*titles, cut))


PRAISE = (
    "superb wonderful excellent brilliant delightful marvelous fantastic lovely amazing perfect"
)
BLAME = "horrible dreadful terrible dull boring stupid disgusting annoying pathetic worthless"


def test_texts_without_labels_teach(
    tmp_path: Path, options: FitOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MiniLM knows which words praise; each is in one labelled row, and the tiny vectors do not tell them apart."""
    monkeypatch.setattr(contrastive, "STEPS", 6)  # six models are fine-tuned: enough for such texts
    words = [("five", word) for word in PRAISE.split()] + [("one", word) for word in BLAME.split()]
    labelled = [(label, f"a {word} film") for label, word in words]
    before = list(enumerate(["so", "very"] * 3))
    texts = [f"{adverb} {word} {i}" for _, word in words for i, adverb in before]
    more = table(*([text] for text in ("review", "", labelled[0][1], *texts)))
    unlabelled = put(tmp_path, "more.csv", more)
    test = write(tmp_path / "test.csv", [(label, f"{word}!") for label, word in words])
    file = write(tmp_path / "stars.csv", labelled)
    options = replace(options, unlabelled=unlabelled, test=test)
    card, report, shown = fit(file, options)
    facts = {"file": "more.csv", "teacher": "all-MiniLM-L6-v2", "texts": 121, "learned": 120}
    assert report["unlabelled"] == facts
    assert "121 different texts without labels" in shown
    names = [one["name"] for one in report["candidates"]]
    assert names[-2:] == [
        f"TF-IDF + frozen vectors + LR, taught by the {teacher}"
        for teacher in ("frozen teacher, C 1", "fine-tuned teacher, C 3")
    ]
    references = [one["name"] for one in report["references"]]
    assert references == [f"no candidate: all-MiniLM-L6-v2 + LR, C {c}" for c in (1, 10)]
    assert "no candidate: all-MiniLM-L6-v2" in (options.out / "report.html").read_text()
    *untaught, frozen, fine_tuned = report["candidates"]
    assert fine_tuned["chosen"]
    for taught in (frozen, fine_tuned):
        assert taught["score"] >= 0.9 > 0.7 >= max(one["score"] for one in untaught)
    assert report["test"]["score"] >= 0.9
    assert card.training.teacher == "all-MiniLM-L6-v2, fine-tuned"
    assert card.training.data[-1].note == "all rows, and 120 texts without labels"

    other = tiny_encoder(tmp_path / "other", 12)
    card, quick, _ = fit(file, replace(options, effort="quick", teacher=str(other)))
    assert [one["name"] for one in quick["candidates"]] == names[:-1]
    assert quick["references"][0]["name"] == "no candidate: other + LR, C 1"
    assert "on other, frozen or" in (options.out / "report.html").read_text()
    assert quick["references"][0]["score"] < 0.9  # which knows nothing, unlike MiniLM


def test_many_rows_train_an_encoder_too(tmp_path: Path, options: FitOptions) -> None:
    """It is held out on a fifth, where it meets the best linear one, which was held out on all rows."""
    file = write(tmp_path / "stars.csv", rows(800))
    card, report, shown = fit(file, options)
    *linear, tuned = report["candidates"]
    assert tuned["name"].startswith("average trained from word vectors")
    assert [(one["rows"], one["deviation"] is None) for one in linear] == [(800, False)] * 6
    assert (tuned["rows"], tuned["deviation"], tuned["score"]) == (160, None, 1.0)
    compared = report["compared"]["candidates"]
    assert [one["rows"] for one in compared] == [160, 160]
    assert compared[1]["name"] == tuned["name"]
    assert "the choice is between these, on the 160 rows that were held out from each" in shown
    assert (card.scores[0].value, card.scores[0].rows) == (1.0, 800)
    assert card.training.data[-1].rows == 800


def test_many_labels_of_few_rows_end_in_a_bundle(tmp_path: Path, options: FitOptions) -> None:
    many = [(f"label {i % 252}", f"a film, {i}") for i in range(504)]
    card, report, _ = fit(write(tmp_path / "many.csv", many), options)
    assert (card.scores[0].rows, card.scores[0].split) == (504, "held out, 2 parts")
    assert report["held_out"] == "every row once, in 2 parts"
    assert report["skipped"][0]["why"].startswith("no label has 10 texts")


def test_pairs_are_fitted_by_an_encoder(tmp_path: Path, options: FitOptions) -> None:
    names = ("entailment", "neutral", "contradiction")
    pairs = [(names[i % 3], f"a {GOOD[i % 3]} film {i}") for i in range(510)]
    card, report, _ = fit(write(tmp_path / "nli.csv", pairs), options, "review", "review")
    assert card.kind == "nli"
    assert [one["chosen"] for one in report["candidates"]] == [True]
    assert (card.scores[0].rows, card.scores[0].split) == (51, "held out, 10% of the rows")


def test_a_bundle_abstains_where_it_is_unsure(tmp_path: Path, options: FitOptions) -> None:
    """Every seventh label is noise, and a third of the texts do not name it."""
    labels = [("one", "five")[i % 7 == 0] for i in range(80)]
    noisy = [
        (label, f"{text} {i} {label if i % 3 else ''}")
        for i, (label, (_, text)) in enumerate(zip(labels, rows(80), strict=True))
    ]
    file, test = (write(tmp_path / f"{name}.csv", noisy) for name in ("unsure", "test"))
    card, report, shown = fit(file, replace(options, abstain=0.9, test=test))
    suspects = [one["text"] for one in report["suspects"]]
    assert len(suspects) == len(set(suspects)) > 1
    for said in (report["abstain"], report["test"]["abstain"]):
        assert 0 < said["answers"] < said["rows"]
        assert said["answered"] == said["answers"] / said["rows"]
        assert said["low"] < said["score"] <= said["high"]
        assert f"answers {said['answers']} of {said['rows']} rows" in shown.replace("\n", " ")
    assert "trained on too, so the score is too high" in shown
    assert card.abstain == report["abstain"]["least"]
    texts = [text for _, text in noisy]
    with load(options) as model:
        unsure = model.predict_proba(texts).max(axis=1) < card.abstain
        assert [label is None for label in model.predict(texts)] == unsure.tolist()
    assert set(unsure) == {True, False}


def test_rows_of_several_labels(tmp_path: Path, options: FitOptions) -> None:
    words = {"good": "praise", "slow": "speed", "ugly": "looks"}
    texts = [[w for place, w in enumerate(words) if number >> place & 1] for number in range(8)] * 8
    made = [
        (" ; ".join(words[w] for w in text) or "none", " ".join([*text, f"film {i}"]))
        for i, text in enumerate(texts)
    ]
    options = replace(options, reading=Reading(separator=";"), class_weight="balanced")
    card, report, _ = fit(write(tmp_path / "several.csv", made), options)
    assert (card.multi_label, card.labels) == (True, ("looks", "none", "praise", "speed"))
    assert report["metric"] == "balanced accuracy"
    assert card.scores[0].metric == "balanced-accuracy"
    assert report["labels"] == {"looks": 32, "none": 8, "praise": 32, "speed": 32}
    assert max(one["score"] for one in report["candidates"]) > 0.9
    reason = "its training has neither several labels a row nor class weights"
    assert report["skipped"][0]["why"] == reason
    with load(options) as model:
        assert model.predict(["good and slow film 9"]).tolist() == [[False, False, True, True]]


def test_bundles_are_found_by_name_and_their_parser_beside_them(
    heedful: Command, tmp_path: Path, pipeline: BuiltParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the package heedful-bundles is installed: nothing lies in the current folder."""
    models, out = tmp_path / "models", tmp_path / "made" / "stars"
    build_bundle(models, pipeline, name="ms-san-embed", kind="embedding", explain=True)
    shutil.copytree(pipeline.folder, models / "parser")
    monkeypatch.setenv("HEEDFUL_MODELS", str(models))
    file = write(tmp_path / "stars.csv", rows(20), ("label", "text"))
    done = heedful("fit", file, "--out", out, "--effort", "quick")
    assert done.returncode == 0, done.stderr
    assert f"`heedful serve --models {out.parent}`" in done.stdout
    assert read(out).card.labels == ("five", "one")
    refused = heedful("fit", file, "--base", out, "--out", tmp_path / "again")
    assert "--base: stars was made by `heedful fit`" in refused.stderr


def test_a_precision_that_is_not_reached_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "stars.csv"
    problem = Problem.of(file, [Row(i, (f"{i}",), "ab"[i % 2]) for i in range(4)], "")
    logits = np.where(problem.targets, 0.0, 3.0)
    wrong = HeldOut(np.arange(4), logits, problem.targets, np.arange(4))
    with pytest.raises(DataError, match=r"no threshold .*: ask for at most 0\.00"):
        Report(file, problem, []).abstain(wrong, 0.9)


BOTH = {"words": True, "vectors": True}
ROWS = 100
"""With 80 right of 100, a standard error is 4."""


def candidate(name: str, right: int, sure: float, **recipe: Any) -> Candidate:
    """Answers `right` of the rows rightly, with logits of this size."""
    return of_rows(name, np.arange(ROWS) < right, sure, **recipe)


def of_rows(name: str, right: np.ndarray, sure: float, **recipe: Any) -> Candidate:
    rows = np.arange(len(right))
    targets = np.eye(2, dtype=bool)[rows % 2]
    signs = np.where(right, sure, -sure)[:, None]
    held = HeldOut(rows, signs * targets, targets, np.zeros(len(rows), int))
    read = Recipe(strength=1, **recipe) if recipe else None
    return Candidate(name, held, 0.0, lambda _: pytest.fail("not made"), read)


def test_kinds_go_before_scores_within_a_standard_error() -> None:
    words = candidate("words", 80, 1, words=True, vectors=False)
    both = candidate("both", 78, 1, **BOTH)
    taught = candidate("taught", 77, 1, **BOTH, teacher="frozen")
    better, far = (
        candidate("taught", right, 1, **BOTH, teacher="fine-tuned") for right in (77, 75)
    )
    tuned = candidate("encoder", 80, 1)
    assert best([words, both]) is both
    assert best([words, both, taught]) is taught
    assert best([words, both, taught, better]) is better
    assert best([words, both, far]) is both
    assert best([words, both, taught, tuned]) is tuned


def test_pairs_of_one_first_text_are_held_out_together() -> None:
    rows = [Row(i, (f"a  text {i // 2}", f"claim {i}"), "ab"[i % 2]) for i in range(4)]
    groups = Problem.of(Path("pairs.csv"), rows, "").groups
    assert groups[0] == groups[1] != groups[2] == groups[3]


def test_class_weights_count_in_the_choice_too() -> None:
    """Nine tenths are of one class: one answers it always, the other knows eight of ten rows of either."""
    rows = np.arange(ROWS)
    targets = np.eye(2, dtype=bool)[(rows < 10).astype(int)]
    made = [of_rows("always", rows >= 10, 2, **BOTH), of_rows("either", rows % 10 >= 2, 2, **BOTH)]
    for balanced, wins in ((False, "always"), (True, "either")):
        weighed = []
        for one in made:
            logits = np.where(one.held.right[:, None], 2.0, -2.0) * targets
            held = HeldOut(rows, logits, targets, rows * 0, balanced=balanced)
            weighed.append(replace(one, held=held))
        assert best(weighed).name == wins
