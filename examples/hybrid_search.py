"""Hybrid search: for each passage, the sum of a score of shared words and one of vectors."""

import math
from collections import Counter

import numpy as np

import heedful

PASSAGES = [
    "To change your password, open Settings and choose Security.",
    "Invoices are sent by email on the first day of each month.",
    "Error E42 means that the printer is out of paper.",
    "You can return a parcel within thirty days.",
]


def words(text: str) -> list[str]:
    return "".join(c.lower() if c.isalnum() else " " for c in text).split()


def by_words(query: str) -> np.ndarray:
    """For each passage, the sum of the weights of the query's words that it has; rare words weigh more."""
    passages = [set(words(passage)) for passage in PASSAGES]
    counts = Counter(word for passage in passages for word in passage)
    weights = {word: math.log(len(PASSAGES) / counts[word]) for word in counts}
    return np.array([sum(weights[w] for w in set(words(query)) & passage) for passage in passages])


def standardized(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.mean()) / (scores.std() + 1e-9)


model = heedful.load("ms-san-embed")
vectors = model.encode(PASSAGES)
for query in ("I forgot my login", "E42"):
    by_meaning = model.similarity(model.encode(query), vectors)[0]
    best = int((standardized(by_words(query)) + standardized(by_meaning)).argmax())
    print(f"{query}: {PASSAGES[best]}")
