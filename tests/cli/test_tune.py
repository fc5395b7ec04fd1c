"""`heedful tune`: what it reads, and what it makes of an embedding."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful.cli.errors import CommandError
from heedful.cli.main import app
from heedful.cli.texts import Columns, Dialect, Source
from heedful.cli.tune import read_pairs
from heedful.cli.tune_run import doubts
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import ScoreCard
from heedful.training.tasks.base import UNLABELLED, Example
from heedful.training.tuning import UNSTATED
from tests.shipped import BUNDLES


def source(folder: Path, rows: Sequence[object]) -> Source:
    file = folder / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = Columns("q", second="r", all_columns=True, pair_options="--columns")
    return Source(str(file), None, columns, Dialect())


def test_a_pair_has_a_score_or_a_third_text(tmp_path: Path) -> None:
    rows = [{"q": "what", "r": "that", "n": "no", "s": 0.5}, {"q": " ", "r": "x", "n": "y", "s": 1}]
    found = source(tmp_path, rows)
    assert list(read_pairs(found, None, None)) == [Example(("what", "that"), UNLABELLED)]
    assert list(read_pairs(found, None, "s")) == [Example(("what", "that"), 0.5)]
    assert list(read_pairs(found, "n", None)) == [Example(("what", "that", "no"), UNLABELLED)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"q": "a", "r": "b", "s": "high"}, r"pairs\.jsonl:1: the score is 'high': give a number"),
        ({"q": "a", "r": "b", "s": "nan"}, "the score is nan"),
        ({"q": "a", "r": "b"}, "no 's': the row has q, r"),
        ({"q": "a", "s": 1}, "no 'r': .*set --columns"),
    ],
)
def test_a_row_that_is_no_pair_is_named(tmp_path: Path, row: object, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        list(read_pairs(source(tmp_path, [row]), None, "s"))


@pytest.mark.slow
def test_a_tuned_bundle_has_the_licence_and_the_data_of_its_base_and_yours(tmp_path: Path) -> None:
    things = ("parcel", "invoice", "password", "refund", "address", "gift card", "newsletter")
    asked = ("Where is my {}?", "Who changes the {}?", "Why is the {} wrong?", "Is a {} free?")
    rows = [
        {"q": question.format(f"{size} {thing}"), "r": f"Read the page about the {size} {thing}."}
        for thing in things
        for size in ("small", "large")
        for question in asked
    ]
    source(tmp_path, rows)
    command = ("tune", str(BUNDLES / "ms-san-embed"), str(tmp_path / "pairs.jsonl"), "--columns")
    folders = ("--runs", str(tmp_path / "runs"), "--data", str(tmp_path))
    result = CliRunner().invoke(
        app, [*command, "q,r", "--out", str(tmp_path / "tuned"), *folders, "--threads", "1"]
    )
    assert result.exit_code == 0, result.output
    assert "held-out pairs are too few to tell" in result.output
    base, card = read_card(BUNDLES / "ms-san-embed"), read_card(tmp_path / "tuned")
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
