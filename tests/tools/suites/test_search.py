"""nDCG and BM25 against their formulas as loops, and collections as they lie in the data folder."""

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.training.metrics import ndcg
from tools.suites import search
from tools.tasks import held_out

DOCUMENTS = ["cats chase mice", "dogs chase cats and cats", "birds sing", "a mouse sings at night"]


def test_ndcg_is_the_mean_over_queries_of_discounted_gains() -> None:
    scores = np.array([[0.1, 0.9, 0.5, 0.5], [0.4, 0.3, 0.2, 0.1]])
    gains = [{0: 1.0, 2: 3.0}, {3: 1.0}]
    # The first query's order is 1, 2, 3, 0, the second's 0, 1, 2, 3.
    first = (3 / math.log2(3) + 1 / math.log2(5)) / (3 / math.log2(2) + 1 / math.log2(3))
    second = (1 / math.log2(5)) / 1
    assert ndcg(scores, gains) == pytest.approx((first + second) / 2)


def test_what_stands_behind_the_tenth_place_gains_nothing() -> None:
    scores = -np.arange(12.0)[None]
    assert ndcg(scores, [{10: 1.0}]) == 0
    assert ndcg(scores, [{9: 1.0}]) == pytest.approx(1 / math.log2(11))


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
    rows: dict[str, list[dict[str, Any]]] = {
        "corpus": [
            {"id": "a", "text": "one"},
            {"id": "b", "text": " "},
            {"id": "c", "text": "two"},
        ],
        "queries": [{"id": "1", "text": "which"}, {"id": "2", "text": "unjudged"}],
        "qrels": [
            {"query": "1", "doc": "c", "score": 2},
            {"query": "1", "doc": "b", "score": 1},  # a blank document, which is left out
            {"query": "1", "doc": "a", "score": 0},
        ],
    }
    for name in search.JUDGED:
        write(tmp_path / "mteb_dev" / name, rows)
    pairs = [{"a": "q", "b": "long text"}, {"a": "q", "b": "other"}, {"a": "p", "b": "other"}]
    write(tmp_path / "text/pairs", dict.fromkeys(held_out.PAIRS, pairs))
    judged, _, held, _ = search.collections(tmp_path)
    assert (judged.documents, judged.queries, judged.gains) == (["one", "two"], ["which"], [{1: 2}])
    relevant = {
        query: {held.documents[i] for i in gains}
        for query, gains in zip(held.queries, held.gains, strict=True)
    }
    assert relevant == {"q": {"long text", "other"}, "p": {"other"}}


def write(folder: Path, files: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Files of JSON lines, gzipped."""
    folder.mkdir(parents=True)
    for name, rows in files.items():
        with gzip.open(folder / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
