"""Unlabelled pairs for a teacher.

A premise with the hypotheses that were written to the premises most like it, and MultiNLI's pairs turned round.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer

from heedful.training.tasks.base import UNLABELLED, Example, Source
from heedful.training.tasks.nli import MNLI_TRAIN, SNLI_TRAIN

ROWS = 2048
"""Premises compared with all others at a time: bounds the memory."""


def nearest(texts: Sequence[str], number: int) -> list[list[int]]:
    """For each text the places of the `number` others with the highest cosine of TF-IDF, nearest first."""
    vectors = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(texts)
    found = []
    for start in range(0, len(texts), ROWS):
        block = vectors[start : start + ROWS] @ vectors.T
        for row in range(block.shape[0]):
            line = block[row]
            order = line.indices[(-line.data).argsort(kind="stable")]
            found.append([int(place) for place in order if place != start + row][:number])
    return found


def mined(pairs: Sequence[Example], neighbours: int) -> list[Example]:
    """Each premise with the hypotheses of its `neighbours` nearest premises, unlabelled."""
    hypotheses: dict[str, dict[str, None]] = {}
    for premise, hypothesis in (pair.texts for pair in pairs):
        hypotheses.setdefault(premise, {})[hypothesis] = None
    premises = list(hypotheses)
    return [
        Example((premise, hypothesis), UNLABELLED)
        for premise, near in zip(premises, nearest(premises, neighbours), strict=True)
        for place in near
        for hypothesis in hypotheses[premises[place]]
        if hypothesis not in hypotheses[premise]
    ]


def _source(pairs: Source, neighbours: int) -> Source:
    def read(data: Path) -> list[Example]:
        return mined(pairs.read(data), neighbours)

    note = f"premises with the hypotheses of their {neighbours} nearest premises, without a label"
    return replace(pairs, note=note, read=read)


def _turned(data: Path) -> list[Example]:
    return [Example(one.texts[::-1], UNLABELLED) for one in MNLI_TRAIN.read(data)]


MINED = (
    _source(SNLI_TRAIN, 3),
    _source(MNLI_TRAIN, 8),
    replace(MNLI_TRAIN, note="its pairs turned round, without a label", read=_turned),
)
