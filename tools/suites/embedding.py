"""Six kinds of work that embeddings do, on small development sets, as MTEB (Muennighoff et al. 2023) scores them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, v_measure_score

from heedful.training.data import labels
from heedful.training.data_folder import find, records
from heedful.training.metrics import ndcg, spearman
from heedful.training.similarity import Embed, Figure, pair_cosines, unit_vectors
from heedful.training.tasks import stsb
from tools.suites import search

KINDS = ("search", "similarity", "pairs", "reranking", "classification", "clustering")
CLASSIFIED = {"clinc150": "dev", "massive_en": "test"}
"""Sets of classes, and the split that is scored."""
ROWS, DRAWS = 16, 5
"""Labelled texts of a class, and how often they are drawn."""
STARTS = 3
"""Runs of k-means, whose scores are averaged."""

METRICS = dict(
    zip(
        KINDS,
        ("nDCG@10", "spearman", "average precision", "MAP", "accuracy", "v-measure"),
        strict=True,
    )
)


def figures(embed: Embed, data: Path) -> Iterator[Figure]:
    """Every score of a model, each between 0 and 1; the sets are named "kind: set". Raises DataMissing."""
    for collection in search.collections(data):
        score = search.dense(collection, embed, embed)
        yield _figure("search", collection.name, score)
    similar = stsb.DEV.read(data)
    yield _figure("similarity", "stsb", spearman(pair_cosines(embed, similar), labels(similar)))
    yield _figure("pairs", "qqp", _pairs(embed, data))
    yield _figure("reranking", "wikiqa", _reranking(embed, data))
    for name in CLASSIFIED:
        yield _figure("classification", name, _classes(embed, data, name))
    yield _figure("clustering", "stackoverflow_titles", _clusters(embed, data))


def aligned_figures(queries: Embed, documents: Embed, data: Path) -> Iterator[Figure]:
    """How well one model's queries search an index of another model's vectors. Raises DataMissing."""
    for collection in search.collections(data):
        score = search.dense(collection, queries, documents)
        yield _figure("search of MiniLM's vectors", collection.name, score)


def bm25_figures(data: Path) -> Iterator[Figure]:
    """The scores of BM25, which only searches. Raises DataMissing."""
    for collection in search.collections(data):
        scores = search.bm25(collection.queries, collection.documents)
        yield _figure("search", collection.name, ndcg(scores, collection.gains))


def means(figures: Iterable[Figure]) -> dict[str, float]:
    """The mean score of each kind in the figures, and "mean" where they have all six."""
    sets: dict[str, list[float]] = {}
    for score in figures:
        kind = score.dataset.partition(": ")[0]
        if kind in KINDS:
            sets.setdefault(kind, []).append(score.value)
    by_kind = {kind: float(np.mean(values)) for kind, values in sets.items()}
    return by_kind | (
        {"mean": float(np.mean(list(by_kind.values())))} if len(by_kind) == len(KINDS) else {}
    )


def _figure(kind: str, name: str, value: float) -> Figure:
    return Figure(f"{kind}: {name}", METRICS.get(kind, METRICS["search"]), value, None)


def _read(data: Path, name: str, split: str) -> list[dict[str, Any]]:
    return list(records(find(data, (f"mteb_dev/{name}/{split}.jsonl",), dataset="mteb_dev")))


def _pairs(embed: Embed, data: Path) -> float:
    """Average precision of the cosines of paraphrases among other pairs."""
    rows = _read(data, "qqp", "dev")
    first, second = (
        unit_vectors(embed, [row[side] for row in rows]) for side in ("sentence1", "sentence2")
    )
    same = [int(row["label"]) for row in rows]
    return float(average_precision_score(same, (first * second).sum(axis=1)))


def _reranking(embed: Embed, data: Path) -> float:
    """Mean average precision over the queries of the order of their candidates."""
    rows = _read(data, "wikiqa", "dev")
    queries = unit_vectors(embed, [row["query"] for row in rows])
    candidates = [[*row["positive"], *row["negative"]] for row in rows]
    vectors = unit_vectors(embed, [text for each in candidates for text in each])
    stops = np.cumsum([len(each) for each in candidates])
    precisions = [
        average_precision_score(
            [1] * len(row["positive"]) + [0] * len(row["negative"]), part @ query
        )
        for row, query, part in zip(rows, queries, np.split(vectors, stops[:-1]), strict=True)
    ]
    return float(np.mean(precisions))


def _classes(embed: Embed, data: Path, name: str) -> float:
    """Accuracy of logistic regression on ROWS vectors a class, the mean of DRAWS draws."""
    train = _read(data, name, "train")
    test = _read(data, name, CLASSIFIED[name])
    draws = [list(_few(train, np.random.default_rng(seed))) for seed in range(DRAWS)]
    used = sorted({i for draw in draws for i in draw})
    vectors = dict(zip(used, unit_vectors(embed, [train[i]["text"] for i in used]), strict=True))
    test_vectors = unit_vectors(embed, [row["text"] for row in test])
    gold = [row["label"] for row in test]
    accuracies = []
    for draw in draws:
        fitted = LogisticRegression(max_iter=100).fit(
            [vectors[i] for i in draw], [train[i]["label"] for i in draw]
        )
        accuracies.append(fitted.score(test_vectors, gold))
    return float(np.mean(accuracies))


def _few(rows: list[dict[str, Any]], rng: np.random.Generator) -> Iterator[int]:
    """The places of ROWS rows of each class, or of all where there are fewer."""
    left: dict[str, int] = {}
    for i in rng.permutation(len(rows)).tolist():
        label = rows[i]["label"]
        if left.setdefault(label, ROWS):
            left[label] -= 1
            yield i


def _clusters(embed: Embed, data: Path) -> float:
    """V-measure of k-means with as many clusters as there are labels."""
    rows = _read(data, "stackoverflow_titles", "dev")
    vectors, gold = (
        unit_vectors(embed, [row["text"] for row in rows]),
        [row["label"] for row in rows],
    )
    scores = [
        v_measure_score(
            gold, KMeans(len(set(gold)), n_init=1, random_state=seed).fit_predict(vectors)
        )
        for seed in range(STARTS)
    ]
    return float(np.mean(scores))
