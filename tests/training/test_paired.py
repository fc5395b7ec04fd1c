"""The losses of pairs and of labelled texts, against loops; how pairs are divided and what is scored."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from heedful.training import contrastive, teachers
from heedful.training.errors import DataError
from heedful.training.paired import SCALE, in_batch_loss, ordered_loss
from heedful.training.tasks.base import UNLABELLED, Example
from heedful.training.tuning import distinct, make_task, score, split


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return functional.normalize(torch.randn(*shape, generator=torch.manual_seed(seed)), dim=-1)


@pytest.mark.parametrize("sides", [2, 3])
def test_each_text_is_told_from_the_partners_of_the_others(sides: int) -> None:
    now, first = drawn(4, sides, 5), drawn(4, sides, 5, seed=1)
    first[2, 1] = first[0, 1]  # two questions with one answer
    losses = []
    for i in range(4):
        logits = {}
        for side in range(1, sides):
            for j in range(4):
                if (side, j) == (1, i) or float(first[j, side] @ first[i, 1]) < 0.999:
                    logits[side, j] = float(now[i, 0] @ now[j, side]) / 0.1
        losses.append(math.log(sum(map(math.exp, logits.values()))) - logits[1, i])
        back = {j: float(now[i, 1] @ now[j, 0]) / 0.1 for j in range(4)}
        losses.append(math.log(sum(map(math.exp, back.values()))) - back[i])
    found = in_batch_loss(now, first, 0.1)
    np.testing.assert_allclose(float(found), np.mean(losses), rtol=1e-4)


def test_a_higher_score_asks_for_a_higher_cosine() -> None:
    cosines, scores = torch.tensor([0.1, 0.9, 0.4, 0.3]), torch.tensor([5.0, 1.0, 3.0, 3.0])
    wrong = sum(
        math.exp(SCALE * float(cosines[j] - cosines[i]))
        for i in range(4)
        for j in range(4)
        if scores[i] > scores[j]
    )
    np.testing.assert_allclose(float(ordered_loss(cosines, scores)), math.log1p(wrong), rtol=1e-5)
    assert float(ordered_loss(cosines, torch.ones(4))) == 0


def test_the_contrastive_loss_is_the_cross_entropy_over_the_other_texts() -> None:
    vectors = drawn(5, 3)
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


def test_a_fine_tuned_encoder_tells_classes_apart() -> None:
    """Every second word, which no vector knows before."""
    words = ["orange", "peach", "plum", "lime"]
    texts = [f"{word} is a {kind}" for kind in ("fruit", "colour") for word in words]
    classes = np.eye(2, dtype=bool)[[0, 1] * 4]

    def gap(model: teachers.Teacher) -> float:
        vectors = model.unit_vectors(texts)
        same = classes @ classes.T & ~np.eye(len(texts), dtype=bool)
        cosines = vectors @ vectors.T
        return float(cosines[same].mean() - cosines[~(classes @ classes.T)].mean())

    tuned = contrastive.fine_tune(teachers.MINILM, texts, classes, seed=1)
    assert gap(teachers.load(teachers.MINILM)) < 0.2 < 0.6 < gap(tuned)


def test_pairs_of_one_first_text_are_held_out_together() -> None:
    pairs = [Example((f"q{i // 2}", f"a{i}"), UNLABELLED) for i in range(100)]
    learned, held = split(pairs, seed=1)
    assert len(held) == 10
    assert sorted(map(str, learned + held)) == sorted(map(str, pairs))
    assert not {one.texts[0] for one in learned} & {one.texts[0] for one in held}
    dev = make_task("mine", learned, held, seed=1).dev.read(Path())
    assert {one.label for one in dev} == {0.0, 1.0}
    assert {one.texts for one in dev if one.label} == {one.texts for one in held}
    assert not {one.texts for one in dev if not one.label} & {one.texts for one in pairs}
    with pytest.raises(DataError, match="1 different pairs are too few: give 50 at least"):
        distinct([Example(("a", "b"), 1.0)] * 60)


def test_what_is_held_out_is_found_among_all() -> None:
    pairs = [Example((f"q{i}", f"a{i}"), UNLABELLED) for i in range(20)]
    axes = dict(zip([f"a{i}" for i in range(20)], np.eye(20, dtype=np.float32), strict=True))
    vectors = axes | {f"q{i}": axes[f"a{i}"] for i in range(20)}
    assert score(vectors, pairs, pairs[:5]) == 1.0
    vectors["q0"] = 0.9 * axes["a1"] + 0.4 * axes["a0"]  # its own answer comes second
    assert score(vectors, pairs, pairs[:5]) == pytest.approx((4 + 1 / math.log2(3)) / 5)
    scored = [Example(one.texts, float(i)) for i, one in enumerate(pairs[:3])]
    vectors |= {"q1": axes["a0"], "q2": axes["a2"], "q0": axes["a0"]}
    assert score(vectors, scored, scored) == pytest.approx(0.0, abs=0.01)
