"""Unlabelled pairs for a teacher: premises with the hypotheses of the most similar premises, and reversed pairs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer

from heedful.training.tasks.base import UNLABELLED, Example, Source
from tools.tasks.nli import MNLI_TRAIN, SNLI_TRAIN
from tools.tasks.nli_sets import NEW_PROTOCOLS_TRAIN

ROWS = 2048
"""Premises that are compared with all others at a time, to limit the memory."""


def nearest(texts: Sequence[str], number: int) -> list[list[int]]:
    """For each text the places of the `number` others with the highest cosine of TF-IDF, nearest first."""
    vectors = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(texts)
    neighbours = []
    for start in range(0, len(texts), ROWS):
        block = vectors[start : start + ROWS] @ vectors.T
        for row in range(block.shape[0]):
            line = block[row]
            order = line.indices[(-line.data).argsort(kind="stable")]
            neighbours.append([int(place) for place in order if place != start + row][:number])
    return neighbours


def mined(pairs: Sequence[Example], neighbours: int) -> list[Example]:
    """Each premise with the hypotheses of its `neighbours` nearest premises, unlabelled."""
    hypotheses: dict[str, dict[str, None]] = {}
    for premise, hypothesis in (pair.texts for pair in pairs):
        hypotheses.setdefault(premise, {})[hypothesis] = None
    premises = list(hypotheses)
    distinct: dict[tuple[str, str], None] = {
        (premise, hypothesis): None
        for premise, near in zip(premises, nearest(premises, neighbours), strict=True)
        for place in near
        for hypothesis in hypotheses[premises[place]]
        if hypothesis not in hypotheses[premise]
    }
    return [Example(pair, UNLABELLED) for pair in distinct]


def _source(pairs: Source, neighbours: int) -> Source:
    def read(data: Path) -> list[Example]:
        return mined(pairs.read(data), neighbours)

    note = f"premises with the hypotheses of their {neighbours} nearest premises, without a label"
    return replace(pairs, note=note, read=read)


def _reversed(pairs: Source) -> Source:
    def read(data: Path) -> list[Example]:
        return [Example(pair.texts[::-1], UNLABELLED) for pair in pairs.read(data)]

    return replace(pairs, note="its pairs turned round, without a label", read=read)


NEIGHBOURS = ((SNLI_TRAIN, 8), (MNLI_TRAIN, 16), (NEW_PROTOCOLS_TRAIN, 4))
MINED = (
    *(_source(pairs, number) for pairs, number in NEIGHBOURS),
    *(_reversed(pairs) for pairs, _ in NEIGHBOURS),
)
