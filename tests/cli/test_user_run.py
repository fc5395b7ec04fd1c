"""`heedful distill` and `heedful tune`: bundles of one's own texts, and what decides their training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heedful
from heedful.cli import distill, distill_run
from heedful.cli.texts import Columns, Source
from heedful.cli.tune import read_pairs
from heedful.cli.tune_run import doubts
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import ScoreCard
from heedful.runtime.model_registry import check_parser
from heedful.text.parse import Parser
from heedful.training import taught_vectors, teacher_vectors, teachers
from heedful.training.config import CACHE
from heedful.training.tasks.base import UNLABELLED, Example
from heedful.training.taught_vectors import agreement, divided, mixed
from heedful.training.tuning import UNSTATED
from tests.asking import present
from tests.builders import WORDS, random_texts
from tests.cli.conftest import Command
from tests.shipped import BUNDLES
from tests.transformer import tiny_encoder
from tests.writing import lines, put

SIZE = 12


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any bundle or parser."""
    monkeypatch.chdir(tmp_path)


def test_a_bundle_gives_the_vectors_of_its_teacher(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taught_vectors, "FEWEST", 500)  # else it would train for a minute
    teacher = tiny_encoder(tmp_path / "encoder", SIZE)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(1, 9))) for _ in range(400)]
    file = tmp_path / "texts.csv"
    file.write_text("".join(f"{text}\n" for text in ["review", *texts, " "]))
    out, runs = tmp_path / "bundles" / "mine", tmp_path / "runs"
    how: dict[str, Any] = {"text_column": "review", "effort": "quick", "threads": 1}
    distill.command(str(teacher), str(file), out, runs=runs, **how)
    card = read_card(out)
    facts = present(card.distilled)
    assert f"{out}: version {card.version}" in capsys.readouterr().out
    assert card.dimension == SIZE
    _, held = divided(texts, seed=1)
    with heedful.load(out) as model:
        ours = model.encode(held)
    theirs = teachers.load(str(teacher)).unit_vectors(held)
    cosines = (ours * theirs).sum(axis=1)
    assert_allclose(facts.cosine, cosines.mean(), atol=0.01)
    assert facts.cosine > 0.85
    given, new = (one.rows for one in card.training.data)
    assert given == len(set(texts)) - len(held)
    assert 0 < new <= 500 - given
    assert facts.bytes == pytest.approx(sum(one.stat().st_size for one in out.iterdir()), rel=0.01)
    check_parser(card, Parser.load(BUNDLES / "parser"))  # it serves beside the shipped bundles
    (run,) = runs.iterdir()  # from which the same command goes on
    assert (run / "run.json").is_file()


def test_a_file_of_vectors_is_a_teacher_of_the_texts_that_have_one(tmp_path: Path) -> None:
    vectors = np.array([[3, 4], [np.nan, 1], [0, 0], [0, 2]], np.float32)
    np.save(tmp_path / "api.npy", vectors)
    assert distill_run._keep("api.npy", ["a", "b", "c", "d"]) == ["a", "d"]
    found = teacher_vectors.stored_vectors("api.npy", ["d", "a"], CACHE, "cpu")
    assert_allclose(found, np.array([[0, 1], [0.6, 0.8]]), atol=1e-3)


def test_neighbours_agree_where_both_have_them() -> None:
    theirs = np.eye(24, dtype=np.float32)
    for i in range(24):
        theirs[i, i // 12 * 12] += 1  # two groups of twelve
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    assert agreement(theirs, theirs) == pytest.approx((1, 1))
    turned = theirs[np.r_[12:24, 0:12]]  # the same groups, other vectors
    cosine, neighbours = agreement(turned, theirs)
    assert cosine == pytest.approx(float((turned * theirs).sum(axis=1).mean()))
    assert neighbours > 0.8
    mixed = theirs[np.arange(24).reshape(2, 12).T.ravel()]
    assert agreement(mixed, theirs)[1] < 0.7


def test_mixed_texts_are_new_and_as_many_as_are_wanted() -> None:
    texts = [" ".join(f"{row}-{i}" for i in range(6 + row)) for row in range(6)]
    texts += ["one two three four five six"[: 4 * row] for row in range(1, 7)] + ["7 " * 41]
    made = mixed(texts, "normal", seed=1)
    assert made == mixed(texts, "normal", seed=1) != mixed(texts, "normal", seed=2)
    assert len(set(made)) == len(made) > 300
    assert not set(made) & set(texts)
    assert set(" ".join(made).split()) <= set(" ".join(texts).split())
    assert mixed(["日本語のテキスト"], "normal", seed=1) == []
    many = random_texts(taught_vectors.FEWEST)
    assert mixed(many, "quick", seed=1) == []
    assert len(mixed(many[:-100], "quick", seed=1)) in range(1, 101)


def source(folder: Path, rows: Sequence[object]) -> Source:
    columns = Columns("q", second="r", all_columns=True, pair_options="--columns")
    return Source(str(put(folder, "pairs.jsonl", lines(*rows))), columns=columns)


def test_a_pair_has_a_score_or_a_third_text(tmp_path: Path) -> None:
    rows = [{"q": "what", "r": "that", "n": "no", "s": 0.5}, {"q": " ", "r": "x", "n": "y", "s": 1}]
    found = source(tmp_path, rows)
    assert list(read_pairs(found, None, None)) == [Example(("what", "that"), UNLABELLED)]
    assert list(read_pairs(found, None, "s")) == [Example(("what", "that"), 0.5)]
    assert list(read_pairs(found, "n", None)) == [Example(("what", "that", "no"), UNLABELLED)]


@pytest.mark.slow
def test_a_tuned_bundle_has_the_licence_and_the_data_of_its_base_and_yours(
    heedful: Command, tmp_path: Path
) -> None:
    things = ("parcel", "invoice", "password", "refund", "address", "gift card", "newsletter")
    asked = ("Where is my {}?", "Who changes the {}?", "Why is the {} wrong?", "Is a {} free?")
    rows = [
        {"q": question.format(f"{size} {thing}"), "r": f"Read the page about the {size} {thing}."}
        for thing in things
        for size in ("small", "large")
        for question in asked
    ]
    source(tmp_path, rows)
    out, folders = tmp_path / "tuned", ("--runs", tmp_path / "runs", "--data", tmp_path)
    given = (BUNDLES / "ms-san-embed", tmp_path / "pairs.jsonl", "--columns", "q,r", "--out", out)
    done = heedful("tune", *given, *folders, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert "held-out pairs are too few to tell" in done.stdout
    base, card = read_card(BUNDLES / "ms-san-embed"), read_card(out)
    assert card.licence == base.licence
    mine, *others = card.training.data
    assert (mine.licence, tuple(others)) == (UNSTATED, base.training.data)


def test_a_bundle_that_is_no_better_or_cannot_be_judged_is_said_to_be() -> None:
    def said(before: float, after: float, rows: int) -> str:
        fields = {"dataset": "faq", "split": "held out", "metric": "ndcg@10", "rows": rows}
        old, new = (ScoreCard.model_validate({**fields, "value": one}) for one in (before, after))
        return " ".join(doubts(old, new, "ms-san-embed"))

    assert not said(0.7, 0.8, 50)
    assert "no better than before: use ms-san-embed as it was" in said(0.8, 0.8, 50)
    assert said(0.7, 0.8, 7).startswith("7 held-out pairs are too few to tell")
    assert "give 500 pairs" in said(0.8, 0.7, 7)
    assert "no better" in said(0.8, 0.7, 7)
