"""Targets, losses and answers of each kind against their formulas, in numpy."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from heedful.models.aligned_words import AlignedNLIHead
from heedful.models.ms_san import MSSAN
from heedful.models.sentence import SentenceEncoder
from heedful.text.arrays import Doubles
from heedful.text.batch import Batch, Sentence, collate
from heedful.text.kinds import RELATEDNESS_LEVELS, Kind
from heedful.training.config import RunConfig
from heedful.training.data import Examples
from heedful.training.metrics import dev_metric
from heedful.training.model import TrainingModel, make_model
from heedful.training.objectives import (
    Objective,
    dev_score,
    make_objective,
    soft_targets,
)
from heedful.training.tasks.base import Example
from tests.builders import WORDS, word_table
from tests.reference.arithmetic import softmax
from tests.training.conftest import changed

LABELS: dict[Kind, tuple[str, ...]] = {
    "nli": ("entailment", "neutral", "contradiction"),
    "classification": ("good", "bad"),
}


def made(kind: Kind, config: RunConfig) -> tuple[Objective, TrainingModel]:
    torch.manual_seed(0)
    table = torch.from_numpy(word_table(dimension=config.words.dim))
    model = make_model(config, kind, len(LABELS.get(kind, ())), table).eval()
    classes = len(LABELS.get(kind, ()))
    made = make_objective(kind, config, classes=classes, pipeline="none", cache=Path("cache"))
    return made, model


def sides(count: int, rows: int = 5) -> list[Batch]:
    rng = np.random.default_rng(3)

    def sentence() -> Sentence:
        n = int(rng.integers(1, 6))
        return Sentence(rng.integers(2, len(WORDS) + 2, n), np.zeros(n, np.int64))

    return [collate([sentence() for _ in range(rows)]) for _ in range(count)]


def numbers(tensor: torch.Tensor) -> Doubles:
    return tensor.detach().double().numpy()


def cosine(a: Doubles, b: Doubles) -> float:
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("kind", ["classification", "nli"])
def test_classes_learn_by_cross_entropy(kind: Kind, config: RunConfig) -> None:
    goal, model = made(kind, config)
    batch = sides(2 if kind == "nli" else 1)
    targets = goal.targets([Example(("x",), label) for label in (0, 1, 1, 0, 1)])
    logits = numbers(model(batch))
    likely = [softmax(row)[target] for row, target in zip(logits, targets, strict=True)]
    loss = goal.loss(model, batch, torch.from_numpy(targets))
    assert loss.item() == pytest.approx(-np.log(likely).mean(), rel=1e-5)
    assert goal.answer(model, batch).tolist() == [int(np.argmax(row)) for row in logits]


def test_each_expert_of_a_head_learns_from_a_loss_of_its_own(config: RunConfig) -> None:
    goal, _ = made("nli", config)
    table = word_table(dimension=6)
    encoder = MSSAN(dim=6, hidden=5, dependency=False, first_words=4)
    words = nn.Embedding.from_pretrained(torch.from_numpy(table).float())
    head = AlignedNLIHead(encoder.dim, size=4, gated=True)
    model, batch = TrainingModel(SentenceEncoder(words, encoder), head, 1.0).eval(), sides(2)
    targets = torch.tensor([0, 1, 1, 0, 2])
    goal.loss(model, batch, targets).backward()
    found = {name: one.grad for name, one in head.named_parameters()}
    for expert, logits in enumerate(head.experts(*map(model.encode, batch))):
        head.zero_grad()
        functional.cross_entropy(logits, targets).backward(retain_graph=True)
        own = {name: one.grad for name, one in head.named_parameters() if one.grad is not None}
        assert {name.startswith("layers.") for name in own} == {expert == 0}
        assert {name.startswith("gate.") for name in own} == {expert == 2}
        for name, gradient in own.items():
            torch.testing.assert_close(found[name], gradient)


def test_relatedness_learns_soft_targets(config: RunConfig) -> None:
    goal, model = made("relatedness", config)
    batch = sides(2)
    scores = [1.0, 2.25, 3.5, 4.9, 5.0]
    targets = goal.targets([Example(("x", "y"), score) for score in scores])
    expected = 0.0
    answers = []
    for logits, target in zip(numbers(model(batch)), targets, strict=True):
        p = softmax(logits)
        expected += sum(t * math.log(t / q) for t, q in zip(target, p, strict=True) if t) / 5
        answers.append(sum((i + 1) * q for i, q in enumerate(p)))
    loss = goal.loss(model, batch, torch.from_numpy(targets))
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(numbers(goal.answer(model, batch)), answers, rtol=1e-5)


def test_dev_scores_are_read_without_dropout(config: RunConfig) -> None:
    goal, model = made("relatedness", changed(config, head={"dropout": 0.9}))
    batch, scores = sides(2), np.array([1.0, 2.25, 3.5, 4.9, 5.0])

    class Dev:
        def batches(self, *_: object) -> Iterator[tuple[list[Batch], Doubles]]:
            yield batch, scores

    _, metric = dev_metric("relatedness")
    expected = metric(numbers(goal.answer(model, batch)), scores)
    model.train()
    assert dev_score(goal, "relatedness", model, cast(Examples, Dev())) == expected


@given(st.lists(st.floats(1, RELATEDNESS_LEVELS), min_size=1, max_size=8))
def test_a_soft_target_lies_on_the_two_neighbouring_scores(scores: list[float]) -> None:
    rows = soft_targets(np.array(scores))
    np.testing.assert_allclose(rows.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(rows @ np.arange(1, RELATEDNESS_LEVELS + 1), scores, atol=1e-5)
    for row, score in zip(rows, scores, strict=True):
        expected = np.zeros(RELATEDNESS_LEVELS + 1)
        low = math.floor(score)
        expected[low - 1] = low - score + 1
        expected[low] = score - low
        np.testing.assert_allclose(row, expected[:RELATEDNESS_LEVELS], atol=1e-6)
    for outside in (0.9, 5.1, math.nan):
        with pytest.raises(ValueError, match="between 1 and 5"):
            soft_targets(np.array([2.0, outside]))


def test_distillation_is_its_two_parts_at_every_size(config: RunConfig) -> None:
    weights = {"regression": 2.0, "ranking": 3.0, "temperature": 0.5, "dimensions": (7, 64)}
    goal, model = made("embedding", changed(config, distillation=weights))
    first, second = sides(2)
    teacher = np.random.default_rng(0).normal(size=(5, 384)).astype(np.float16)
    vectors, wide = numbers(model.encode(first)), teacher.astype(np.float64)
    assert vectors.shape == wide.shape, "what is served is what is trained"

    def others(rows: Doubles, i: int) -> Doubles:
        return np.array([cosine(rows[i], rows[j]) for j in range(5) if j != i])

    expected = []
    for size in (7, 64, 384):
        cut = vectors[:, :size]
        regression = np.mean([1 - cosine(a, b) for a, b in zip(cut, wide[:, :size], strict=True)])
        wanted, found = ([others(rows, i) for i in range(5)] for rows in (wide, cut))
        shares = [np.array([softmax(list(row / 0.5)) for row in side]) for side in (wanted, found)]
        ranking = (shares[0] * np.log(shares[0] / shares[1])).sum(axis=1).mean()
        expected.append(2 * regression + 3 * ranking)
    loss = goal.loss(model, [first], torch.from_numpy(teacher))
    assert loss.item() == pytest.approx(np.mean(expected), rel=1e-3)
    answers = list(map(cosine, vectors, numbers(model.encode(second))))
    np.testing.assert_allclose(numbers(goal.answer(model, [first, second])), answers, rtol=1e-4)
