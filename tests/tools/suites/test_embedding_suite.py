"""The six kinds of work, on toy sets whose right answers are known."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.text.arrays import Floats
from heedful.training.similarity import Figure
from tests.tools.suites.test_search import write
from tools.suites import embedding as embedding_suite
from tools.suites import search
from tools.tasks import held_out

TOPICS = ("sea", "war", "food")


def by_topic(texts: Sequence[str]) -> Floats:
    """A vector that knows a text's topic and nothing else."""
    return np.array([[topic in text for topic in TOPICS] for text in texts], np.float32)


def by_chance(texts: Sequence[str]) -> Floats:
    """A vector that knows nothing of what a text says."""
    return np.random.default_rng(len(texts)).normal(size=(len(texts), 4)).astype(np.float32)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [{"text": f"{topic} number {i}", "label": topic} for topic in TOPICS for i in range(40)]
    sets = {"clinc150": ("train", "dev"), "massive_en": ("train", "test")}
    for name, splits in sets.items():
        write(tmp_path / "mteb_dev" / name, dict.fromkeys(splits, rows))
    write(tmp_path / "mteb_dev/stackoverflow_titles", {"dev": rows})
    asked = {"query": "the sea?", "positive": ["sea it is"], "negative": ["war is", "food is"]}
    write(tmp_path / "mteb_dev/wikiqa", {"dev": [asked]})
    same: list[dict[str, Any]] = [
        {"sentence1": f"a {one}", "sentence2": f"that {other}", "label": int(one == other)}
        for one in TOPICS
        for other in TOPICS
    ]
    write(tmp_path / "mteb_dev/qqp", {"dev": same})
    similar = [{"a": r["sentence1"], "b": r["sentence2"], "score": 5 * r["label"]} for r in same]
    write(tmp_path / "stsb", {"dev": similar})
    documents: list[dict[str, Any]] = [{"id": topic, "text": f"of the {topic}"} for topic in TOPICS]
    judged: list[dict[str, Any]] = [{"query": topic, "doc": topic, "score": 1} for topic in TOPICS]
    for name in search.JUDGED:
        parts = {"corpus": documents, "queries": documents, "qrels": judged}
        write(tmp_path / "mteb_dev" / name, parts)
    pairs = [{"a": f"{topic}?", "b": f"A text of {topic}."} for topic in TOPICS]
    write(tmp_path / "text/pairs", dict.fromkeys(held_out.PAIRS, pairs))
    return tmp_path


def test_who_knows_the_topic_is_right_in_every_kind(data: Path) -> None:
    figures = list(embedding_suite.figures(by_topic, data))
    assert [one.value for one in figures] == pytest.approx([1.0] * len(figures))
    means = embedding_suite.means(figures)
    assert list(means) == [*embedding_suite.KINDS, "mean"]
    worse = embedding_suite.means(embedding_suite.figures(by_chance, data))
    assert worse["mean"] < 0.7


def test_a_mean_is_over_the_sets_of_a_kind_and_then_over_kinds() -> None:
    values = {"search: a": 0.2, "search: b": 0.4, "search of MiniLM's vectors: a": 1.0}
    found = [Figure(name, "nDCG@10", value, None) for name, value in values.items()]
    assert embedding_suite.means(found) == pytest.approx({"search": 0.3})
    found += [Figure(f"{kind}: c", "", 0.6, None) for kind in embedding_suite.KINDS[1:]]
    assert embedding_suite.means(found)["mean"] == pytest.approx((0.3 + 5 * 0.6) / 6)
