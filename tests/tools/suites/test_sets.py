"""The sets that embeddings are scored on, on toy data whose right answers are known; BM25 against its formula."""

import gzip
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.text.arrays import Floats
from heedful.training.similarity import Figure
from tests.training.test_tasks import lines
from tests.training.test_tasks import write as write_texts
from tools import transfer as record
from tools.suites import embedding, search, transfer
from tools.tasks import held_out

DOCUMENTS = ["cats chase mice", "dogs chase cats and cats", "birds sing", "a mouse sings at night"]
TOPICS = ("sea", "war", "food")
WORDS = ("good", "bad", "film", "who", "where", "how")
FOLDED = {"cr": "CR/custrev.neg", "mpqa": "MPQA/mpqa.neg", "subj": "SUBJ/subj.objective"}


def write(folder: Path, files: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Files of JSON lines, gzipped."""
    content = {name: gzip.compress(lines(*rows).encode()) for name, rows in files.items()}
    write_texts(folder, {f"{name}.jsonl.gz": one for name, one in content.items()})


def test_bm25_is_the_formula() -> None:
    found = search.bm25(["cats and mice", "sings"], DOCUMENTS)
    words = [[w for w in text.split() if w not in ("and", "a", "at")] for text in DOCUMENTS]
    mean = sum(map(len, words)) / 4
    for row, query in zip(found, (["cats", "mice"], ["sings"]), strict=True):
        for score, document in zip(row, words, strict=True):
            expected = 0.0
            for word in query:
                held = sum(word in one for one in words)
                count = document.count(word)
                length = 1 - search.B + search.B * len(document) / mean
                share = count * (search.K1 + 1) / (count + search.K1 * length)
                expected += math.log(1 + (4 - held + 0.5) / (held + 0.5)) * share
            assert score == pytest.approx(expected)


def test_a_collection_is_read_with_its_judgements(tmp_path: Path) -> None:
    judged = [("1", "c", 2), ("1", "b", 1), ("1", "a", 0)]  # b is blank and left out
    rows: dict[str, list[dict[str, Any]]] = {
        "corpus": [
            {"id": id, "text": text} for id, text in (("a", "one"), ("b", " "), ("c", "two"))
        ],
        "queries": [{"id": "1", "text": "which"}, {"id": "2", "text": "unjudged"}],
        "qrels": [dict(zip(("query", "doc", "score"), one, strict=True)) for one in judged],
    }
    for name in search.JUDGED:
        write(tmp_path / "mteb_dev" / name, rows)
    pairs = [{"a": "q", "b": "long text"}, {"a": "q", "b": "other"}, {"a": "p", "b": "other"}]
    write(tmp_path / "text/pairs", dict.fromkeys(held_out.PAIRS, pairs))
    first, _, held, _ = search.collections(tmp_path)
    assert (first.documents, first.queries, first.gains) == (["one", "two"], ["which"], [{1: 2}])
    relevant = {
        query: {held.documents[i] for i in gains}
        for query, gains in zip(held.queries, held.gains, strict=True)
    }
    assert relevant == {"q": {"long text", "other"}, "p": {"other"}}


def by_topic(texts: Sequence[str]) -> Floats:
    """A vector that knows a text's topic and nothing else."""
    return np.array([[topic in text for topic in TOPICS] for text in texts], np.float32)


def by_chance(texts: Sequence[str]) -> Floats:
    """A vector that knows nothing of what a text says."""
    return np.random.default_rng(len(texts)).normal(size=(len(texts), 4)).astype(np.float32)


def test_who_knows_the_topic_is_right_in_every_kind(tmp_path: Path) -> None:
    rows = [{"text": f"{topic} number {i}", "label": topic} for topic in TOPICS for i in range(40)]
    asked = {"query": "the sea?", "positive": ["sea it is"], "negative": ["war is", "food is"]}
    same: list[dict[str, Any]] = [
        {"sentence1": f"a {one}", "sentence2": f"that {other}", "label": int(one == other)}
        for one in TOPICS
        for other in TOPICS
    ]
    similar = [
        {"a": one["sentence1"], "b": one["sentence2"], "score": 5 * one["label"]} for one in same
    ]
    documents = [{"id": topic, "text": f"of the {topic}"} for topic in TOPICS]
    judged = [{"query": topic, "doc": topic, "score": 1} for topic in TOPICS]
    parts: dict[str, list[Any]] = {"corpus": documents, "queries": documents, "qrels": judged}
    pairs = [{"a": f"{topic}?", "b": f"A text of {topic}."} for topic in TOPICS]
    sets: dict[str, list[Any]] = {
        **{f"clinc150/{split}": rows for split in ("train", "dev")},
        **{f"massive_en/{split}": rows for split in ("train", "test")},
        **{"stackoverflow_titles/dev": rows, "wikiqa/dev": [asked], "qqp/dev": same},
        **{f"{name}/{part}": one for name in search.JUDGED for part, one in parts.items()},
    }
    write(tmp_path / "mteb_dev", sets)
    write(tmp_path / "stsb", {"dev": similar})
    write(tmp_path / "text/pairs", dict.fromkeys(held_out.PAIRS, pairs))
    figures = list(embedding.figures(by_topic, tmp_path))
    assert [one.value for one in figures] == pytest.approx([1.0] * len(figures))
    means = embedding.means(figures)
    assert list(means) == [*embedding.KINDS, "mean"]
    assert embedding.means(embedding.figures(by_chance, tmp_path))["mean"] < 0.7


def test_a_mean_is_over_the_sets_of_a_kind_and_then_over_kinds() -> None:
    values = {"search: a": 0.2, "search: b": 0.4, "search of MiniLM's vectors: a": 1.0}
    found = [Figure(name, "nDCG@10", value, None) for name, value in values.items()]
    assert embedding.means(found) == pytest.approx({"search": 0.3})
    found += [Figure(f"{kind}: c", "", 0.6, None) for kind in embedding.KINDS[1:]]
    assert embedding.means(found)["mean"] == pytest.approx((0.3 + 5 * 0.6) / 6)


def counts(texts: Sequence[str]) -> Floats:
    """(N, 6) how often each word occurs in a text."""
    return np.array([[text.split().count(word) for word in WORDS] for text in texts], np.float32)


def test_frozen_vectors_that_tell_and_vectors_that_do_not(tmp_path: Path) -> None:
    questions = "HUM:ind who film\nLOC:city where film\nNUM:dist how film\n" * 20
    trees = "(4 (4 good) (2 film))\n(0 (0 bad) (2 film))\n" * 20
    second = {"neg": "pos", "objective": "subjective"}
    files = {"train_5500.label": questions, "TREC_10.label": questions}
    files |= {f"trees/{split}.txt": trees for split in ("train", "dev", "test")}
    for name in FOLDED.values():
        stem, _, label = name.rpartition(".")
        files |= {name: "bad film\n" * 60, f"{stem}.{second[label]}": "good film\n" * 40}
    write_texts(tmp_path, files)
    assert transfer.accuracies(counts, tmp_path) == dict.fromkeys((*FOLDED, "trec", "sst2"), 1.0)
    untold = transfer.accuracies(lambda texts: np.ones((len(texts), 2), np.float32), tmp_path)
    commoner = 0.6  # share of the commoner label
    assert untold == pytest.approx(dict.fromkeys(FOLDED, commoner) | {"trec": 1 / 3, "sst2": 0.5})


def test_cosines_against_the_gold_scores(tmp_path: Path) -> None:
    pairs = [("good", "good film", 4.0), ("good", "good", 5.0), ("good", "bad", 1.0)]
    rows = [{"a": a, "b": b, "score": score, "label": "neutral"} for a, b, score in pairs]
    write_texts(tmp_path, dict.fromkeys(("stsb/dev.jsonl", "sick/test.jsonl"), lines(*rows)))
    found = record.similarities(counts, tmp_path)
    assert found["stsb dev spearman"] == pytest.approx(1)
    expected = np.corrcoef([np.sqrt(0.5), 1, 0], [4, 5, 1])[0, 1]
    assert found["sick test pearson"] == pytest.approx(expected, abs=1e-6)
