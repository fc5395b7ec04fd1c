"""MiniLM fine-tuned on a few labelled texts."""

import numpy as np
import torch

from heedful.training import contrastive, minilm

TEXTS = [
    f"{word} is a {kind}"
    for kind in ["fruit", "colour"]
    for word in ["orange", "peach", "plum", "lime"]
]
CLASSES = np.eye(2, dtype=bool)[[0, 1] * 4]
"""Every second word, which no vector knows before."""


def test_the_loss_is_that_of_all_pairs() -> None:
    vectors = torch.nn.functional.normalize(
        torch.randn(5, 3, generator=torch.manual_seed(0)), dim=1
    )
    sets = [{0}, {0}, {1}, {0, 1}, {2}]
    classes = torch.tensor([[float(c in one) for c in range(3)] for one in sets])
    errors: dict[bool, list[float]] = {True: [], False: []}
    for i, first in enumerate(sets):
        for j, second in enumerate(sets):
            if i != j:
                wanted = len(first & second) / len(first | second)
                cosine = float(vectors[i] @ vectors[j])
                errors[bool(first & second)].append((cosine - wanted) ** 2)
    expected = np.mean([np.mean(side) for side in errors.values()])
    np.testing.assert_allclose(float(contrastive.pair_loss(vectors, classes)), expected, rtol=1e-5)
    alone = contrastive.pair_loss(vectors[:2], classes[:2])  # no text of another class
    assert np.isfinite(float(alone))


def test_classes_come_apart() -> None:
    def gap(model: minilm.MiniLM) -> float:
        vectors = minilm.unit_vectors(model, TEXTS)
        same = CLASSES @ CLASSES.T & ~np.eye(len(TEXTS), dtype=bool)
        cosines = vectors @ vectors.T
        return float(cosines[same].mean() - cosines[~(CLASSES @ CLASSES.T)].mean())

    tuned = contrastive.fine_tune(TEXTS, CLASSES, seed=1)
    assert gap(minilm.load()) < 0.2 < 0.6 < gap(tuned)
