"""MiniLM fine-tuned on a few labelled texts."""

import math

import numpy as np
import torch
from torch.nn import functional

from heedful.training import contrastive, teachers

TEXTS = [
    f"{word} is a {kind}"
    for kind in ["fruit", "colour"]
    for word in ["orange", "peach", "plum", "lime"]
]
CLASSES = np.eye(2, dtype=bool)[[0, 1] * 4]
"""Every second word, which no vector knows before."""


def test_the_loss_is_the_cross_entropy_over_the_other_texts() -> None:
    vectors = functional.normalize(torch.randn(5, 3, generator=torch.manual_seed(0)), dim=1)
    sets = [{0}, {0}, {1}, {0, 1}, {2}]
    classes = torch.tensor([[float(c in one) for c in range(3)] for one in sets])
    losses = []
    for i, first in enumerate(sets):
        others = [j for j in range(5) if j != i]
        shares = [len(first & sets[j]) / len(first | sets[j]) for j in others]
        if sum(shares):
            powers = [math.exp(float(vectors[i] @ vectors[j]) / 0.1) for j in others]
            logs = [math.log(power / sum(powers)) for power in powers]
            losses.append(-sum(s * log for s, log in zip(shares, logs, strict=True)) / sum(shares))
    assert len(losses) == 4
    found = contrastive.contrastive_loss(vectors, classes)
    np.testing.assert_allclose(float(found), np.mean(losses), rtol=1e-5)
    assert contrastive.contrastive_loss(vectors[[0, 2]], classes[[0, 2]]) == 0  # no class in common


def test_a_text_is_never_its_own_partner() -> None:
    targets = np.eye(2, dtype=bool)[[0, 0, 1, 1]]
    for batch in contrastive._batches(targets, np.random.default_rng(0)):
        half = len(batch) // 2
        for row, partner in zip(batch[:half], batch[half:], strict=True):
            assert {row, partner} in ({0, 1}, {2, 3})


def test_classes_come_apart() -> None:
    def gap(model: teachers.Teacher) -> float:
        vectors = model.unit_vectors(TEXTS)
        same = CLASSES @ CLASSES.T & ~np.eye(len(TEXTS), dtype=bool)
        cosines = vectors @ vectors.T
        return float(cosines[same].mean() - cosines[~(CLASSES @ CLASSES.T)].mean())

    tuned = contrastive.fine_tune(teachers.MINILM, TEXTS, CLASSES, seed=1)
    assert gap(teachers.load(teachers.MINILM)) < 0.2 < 0.6 < gap(tuned)
