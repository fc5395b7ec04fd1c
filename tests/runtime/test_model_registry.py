"""The model that answers a request without a name."""

from pathlib import Path
from typing import Any

from heedful.runtime.bundles.card import Card, ScoreCard
from heedful.runtime.model_registry import default

SHIPPED = Card.model_validate_json(Path("bundles/ms-san-nli/card.json").read_bytes())


def card(name: str, *values: float, dataset: str = "snli", **fields: Any) -> Card:
    """A card with `values` as its dev scores, and a test score that must not count."""
    scores = tuple(
        ScoreCard(dataset=dataset, split=split, metric="accuracy", value=value, rows=9)
        for split, value in [*(("dev", value) for value in values), ("test", 0.99)]
    )
    return SHIPPED.model_copy(update={"name": name, "scores": scores, **fields})


def test_the_better_one_on_the_same_dev_split_unless_a_model_is_for_everyday_texts() -> None:
    """Models of another dataset or other labels are not compared."""
    assert default([card("a", 0.79), card("b", 0.80), card("c", 0.75)]).name == "b"
    assert default([card("a", 0.8), card("b", 0.8)]).name == "a"
    labels = ("negative", "positive")
    others = card("b", 0.9, dataset="mnli"), card("c", 0.9, labels=labels), card("d")
    assert default([card("a", 0.5), *others]).name == "a"
    assert default([card("a"), *others]).name == "a"
    everyday = card("z", 0.5, task="sentiment", labels=("negative", "neutral", "positive"))
    assert default([card("a", 0.9), everyday]).name == "z"
