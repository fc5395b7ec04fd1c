"""The cosines of an embedding beside the scores of pairs: STS-B, SICK, and sentences that have nothing in common."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from sklearn.metrics import roc_auc_score

from heedful.text.arrays import Floats
from heedful.training.data import labels
from heedful.training.metrics import spearman
from heedful.training.tasks import sick, stsb
from heedful.training.tasks.base import Example
from heedful.training.teachers import unit

Split = Literal["dev", "test"]
Embed = Callable[[Sequence[str]], Floats]
"""Texts (N,) -> vectors (N, D)."""
SEED = 1
RELATED, UNRELATED = 4.0, 1.0
"""STS-B pairs of at least the first score should have a larger cosine than pairs of at most the second."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A score of a model on a set of examples."""

    dataset: str
    metric: str
    value: float
    rows: int | None  # None where the set is read in folds or is another task's


def sample(examples: Sequence[Example], rows: int | None) -> list[Example]:
    """At most `rows` of the examples, drawn with a fixed seed."""
    if rows is None or len(examples) <= rows:
        return list(examples)
    chosen = np.random.default_rng(SEED).choice(len(examples), rows, replace=False)
    return [examples[i] for i in sorted(chosen)]


def unit_vectors(embed: Embed, texts: Sequence[str]) -> Floats:
    """(N, D) the texts' vectors, scaled to length 1."""
    return unit(np.asarray(embed(texts), np.float32))


def pair_cosines(embed: Embed, pairs: Sequence[Example]) -> Floats:
    """(N,) the cosines of the pairs' two texts."""
    first, second = (unit_vectors(embed, [pair.texts[side] for pair in pairs]) for side in (0, 1))
    cosines: Floats = (first * second).sum(axis=1)
    return cosines


def similarities(
    embed: Embed, data: Path, split: Split, rows: int | None = None
) -> Iterator[Figure]:
    """Similarity of pairs, at most `rows` of a set, and the cosines of unrelated sentences. Raises DataMissing."""
    similar = sample((stsb.DEV if split == "dev" else stsb.TEST).read(data), rows)
    cosines, gold = pair_cosines(embed, similar), labels(similar)
    yield Figure("STS-B", "spearman", spearman(cosines, gold), len(similar))
    clear = (gold >= RELATED) | (gold <= UNRELATED)
    area = float(roc_auc_score(gold[clear] >= RELATED, cosines[clear]))
    yield Figure("STS-B related above unrelated", "AUC", area, int(clear.sum()))
    places = np.random.default_rng(SEED).permutation(len(similar))
    others = [  # not of neighbouring rows, which are of one source
        Example((similar[i].texts[0], similar[j].texts[1]), 0)
        for i, j in zip(places, np.roll(places, 1), strict=True)
    ]
    unrelated = float(pair_cosines(embed, others).mean())
    yield Figure("STS-B random pairs", "mean cosine", unrelated, len(others))
    parts = ("train", "dev") if split == "dev" else ("test",)
    pairs = [pair for part in parts for pair in sick.RELATEDNESS[part].read(data)]
    related = sample(pairs, rows)
    value = spearman(pair_cosines(embed, related), labels(related))
    yield Figure(f"SICK {'+'.join(parts)}", "spearman", value, len(related))
