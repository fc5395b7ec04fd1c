"""Search: small collections of documents with judged queries, and BM25."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from heedful.text.arrays import Doubles
from heedful.training.data_folder import find, records
from heedful.training.metrics import ndcg
from heedful.training.similarity import Embed, unit_vectors
from tools.tasks import held_out

JUDGED = ("cranfield", "cacm")
"""Collections of `mteb_dev`; the other collections are the pairs that training leaves out."""
PAIRS = 3_000
"""Pairs that make a collection: each first side is a query, each second side a document."""
SEED = 1
K1, B = 1.2, 0.75
"""BM25's saturation of a word's count and share of a document's length, as in Lucene."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, queries and, for each query, the gain of each relevant document."""

    name: str
    documents: list[str]
    queries: list[str]
    gains: list[dict[int, float]]


def collections(data: Path) -> list[Collection]:
    """All collections. Raises DataMissing."""
    return [
        *(_judged(data, name) for name in JUDGED),
        *(_of_pairs(data, name) for name in held_out.PAIRS),
    ]


def _judged(data: Path, name: str) -> Collection:
    def read(part: str) -> list[dict[str, str]]:
        file = find(data, (f"mteb_dev/{name}/{part}.jsonl",), dataset="mteb_dev")
        return list(records(file))

    documents, queries = [row for row in read("corpus") if row["text"].strip()], read("queries")
    places = {row["id"]: i for i, row in enumerate(documents)}
    gains: dict[str, dict[int, float]] = defaultdict(dict)
    for row in read("qrels"):
        if row["doc"] in places and float(row["score"]) > 0:
            gains[row["query"]][places[row["doc"]]] = float(row["score"])
    judged = [row for row in queries if gains[row["id"]]]
    return Collection(
        name,
        [row["text"] for row in documents],
        [row["text"] for row in judged],
        [gains[row["id"]] for row in judged],
    )


def _of_pairs(data: Path, name: str) -> Collection:
    rows = list(records(find(data, (f"text/pairs/{name}.jsonl",), dataset="text")))
    chosen = np.random.default_rng(SEED).permutation(len(rows))[:PAIRS]
    places: dict[str, int] = {}
    gains: dict[str, dict[int, float]] = defaultdict(dict)
    for i in chosen:
        document = places.setdefault(rows[i]["b"], len(places))
        gains[rows[i]["a"]][document] = 1.0
    return Collection(name, list(places), list(gains), list(gains.values()))


def dense(collection: Collection, queries: Embed, documents: Embed) -> float:
    """nDCG@10 by the cosine of the queries' vectors and the documents', which may be of two models."""
    scores = (
        unit_vectors(queries, collection.queries) @ unit_vectors(documents, collection.documents).T
    )
    return ndcg(scores, collection.gains)


def bm25(queries: Sequence[str], documents: Sequence[str]) -> Doubles:
    """(Q, N) the BM25 scores (Robertson et al. 1995) of words without English stop words."""
    words = CountVectorizer(stop_words="english")
    counts = sparse.csr_matrix(words.fit_transform(documents), dtype=np.float64)
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])  # documents of each word
    rarity = np.log1p((len(documents) - frequency + 0.5) / (frequency + 0.5))
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    rows = np.repeat(np.arange(len(documents)), np.diff(counts.indptr))
    counts.data = counts.data * (K1 + 1) / (counts.data + norm[rows]) * rarity[counts.indices]
    scores: Doubles = (words.transform(queries) @ counts.T).toarray()
    return scores
