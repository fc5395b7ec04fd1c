"""Targets, losses and answers of each kind, and of pairs, against their formulas; steps and averages of the weights.

Also targets that are the answers of another run."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from heedful.export import run
from heedful.models.aligned_words import AlignedNLIHead
from heedful.models.ms_san import MSSAN
from heedful.models.sentence import SentenceEncoder
from heedful.text.arrays import Doubles
from heedful.text.batch import Batch, Sentence, collate
from heedful.text.kinds import RELATEDNESS_LEVELS, Kind
from heedful.text.parse import Parser
from heedful.training.config import OptimiserConfig, Paths, RunConfig, TeacherConfig
from heedful.training.contrastive import contrastive_loss
from heedful.training.distillation import probabilities
from heedful.training.errors import ConfigError, RunMissing
from heedful.training.metrics import dev_metric
from heedful.training.model import TrainingModel, make_model
from heedful.training.objectives import Objective, dev_score, make_objective, soft_targets
from heedful.training.optimise import Optimisation, make_optimisers, make_schedule, moving_average
from heedful.training.paired import SCALE, in_batch_loss, ordered_loss
from heedful.training.prepare import Prepared, prepare
from heedful.training.restore import restore
from heedful.training.tasks import get
from heedful.training.tasks.base import UNLABELLED, Example
from tests.builders import WORDS, word_table
from tests.reference.arithmetic import softmax
from tests.training.conftest import changed, train

CLASSES: dict[Kind, int] = {"nli": 3, "classification": 2}


def made(kind: Kind, config: RunConfig) -> tuple[Objective, TrainingModel]:
    torch.manual_seed(0)
    table = torch.from_numpy(word_table(dimension=config.words.dim))
    classes = CLASSES.get(kind, 0)
    model = make_model(config, kind, classes, table).eval()
    goal = make_objective(kind, config, classes=classes, pipeline="none", cache=Path("cache"))
    return goal, model


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


def test_each_expert_of_a_head_has_a_separate_loss(config: RunConfig) -> None:
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
    dev: Any = SimpleNamespace(batches=lambda *_: [(batch, scores)])
    _, metric = dev_metric("relatedness")
    expected = metric(numbers(goal.answer(model, batch)), scores)
    assert dev_score(goal, "relatedness", model.train(), dev) == expected


@given(st.lists(st.floats(1, RELATEDNESS_LEVELS), min_size=1, max_size=8))
def test_a_soft_target_lies_on_the_two_neighbouring_scores(scores: list[float]) -> None:
    rows = soft_targets(np.array(scores))
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
    found = contrastive_loss(vectors, classes)
    np.testing.assert_allclose(float(found), np.mean(losses), rtol=1e-5)
    assert contrastive_loss(vectors[[0, 2]], classes[[0, 2]]) == 0  # no class in common


def prepared(config: RunConfig, paths: Paths) -> tuple[TrainingModel, Prepared]:
    """A model of `config` before its first step, and its data."""
    task = get(config.task)
    objective = make_objective(
        task.kind, config, classes=len(task.labels), pipeline=paths.parser, cache=paths.cache
    )
    examples = [one for source in task.train for one in source.read(paths.data)]
    dev = {task.name: task.dev.read(paths.data)}
    inputs = prepare(config, task, objective, examples, dev, paths)
    torch.manual_seed(config.seed)
    return make_model(config, task.kind, len(task.labels), inputs.words), inputs


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_the_l2_penalty_is_that_of_the_loss(name: str) -> None:
    def trained(**decay: float) -> list[Tensor]:
        """Weights after three steps down the same loss."""
        torch.manual_seed(0)
        layer, x = nn.Linear(4, 3), torch.randn(8, 4)
        config = OptimiserConfig.model_validate({"name": name, "rate": 0.1, **decay})
        (optimiser,) = make_optimisers([{"params": [*layer.parameters()]}], [], config)
        for _ in range(3):
            loss = layer(x).exp().mean()
            if not decay:
                loss = loss + 0.3 / 2 * (layer.weight.square().sum() + layer.bias.square().sum())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return [layer.weight, layer.bias]

    for ours, explicit in zip(trained(weight_decay=0.3), trained(), strict=True):
        torch.testing.assert_close(ours, explicit, atol=2e-5, rtol=1e-3)


def test_a_step_is_no_longer_than_the_clipped_gradient(config: RunConfig, paths: Paths) -> None:
    model, inputs = prepared(config, paths)
    sgd = {"name": "sgd", "rate": 1.0, "momentum": 0.0, "clip": 0.01}
    optimisation = Optimisation.of(model, changed(config, optimiser=sgd), 1)
    layers = [p for group in optimisation.optimisers[0].param_groups for p in group["params"]]
    before = [p.detach().clone() for p in layers]
    sides, targets = next(inputs.train.batches(8, np.random.default_rng(0)))
    optimisation.step(1e6 * functional.cross_entropy(model(sides), torch.from_numpy(targets)), 0)
    moves = [(now - then).norm() for now, then in zip(layers, before, strict=True)]
    assert torch.stack(moves).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_a_head_with_batch_norm_learns_from_mixed_lengths(config: RunConfig, paths: Paths) -> None:
    """Encoded in parts of similar lengths, a batch has the same vectors in the same order."""
    dsa = {"name": "dsa", "config": {"layers": 1, "size": 6, "dropout": 0.0, "word_dropout": 0.0}}
    plain, _ = prepared(config, paths)
    assert not plain.mixed
    model, inputs = prepared(changed(config, encoder=dsa), paths)
    assert model.mixed
    ((side, *_), _), *_ = replace(inputs.train, mixed=True).batches(24, np.random.default_rng(1))
    assert len(set(side.lengths.tolist())) > 1
    whole, parts = model.eval().encode(side), model.train().encode(side)
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=0)


def test_averaged_weights_have_their_own_statistics(config: RunConfig, paths: Paths) -> None:
    """What batch norm subtracts from the data is the data's mean under the averaged weights, without dropout."""
    dsa = {"name": "dsa", "config": {"layers": 1, "size": 6, "dropout": 0.5}}
    config = changed(config, encoder=dsa, optimiser={"batch": 24, "ema_decay": 0.9})
    model, inputs = prepared(config, paths)
    optimisation = Optimisation.of(model, config, 1)
    assert optimisation.average
    for weight in optimisation.evaluated.parameters():
        torch.nn.init.normal_(weight)  # far from the live weights
    optimisation.estimate_statistics(inputs.train, config)
    (norm,) = (one for one in optimisation.evaluated.modules() if isinstance(one, nn.BatchNorm1d))
    read: list[Tensor] = []
    with norm.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0])), torch.no_grad():
        (sides, _), *others = inputs.train.batches(24, np.random.default_rng(1))
        assert not others
        optimisation.evaluated.eval()(sides)
    assert norm.running_mean is not None
    torch.testing.assert_close(norm.running_mean, read[0].mean(0))
    assert (norm.running_mean.abs() > 0.01).any()


def test_the_average_soon_forgets_its_start() -> None:
    """A decay of .999 alone would still be at 1 - .999 ** 20 = 2 % of the way after 20 updates."""
    model = nn.Linear(1, 1, bias=False)
    average = moving_average(model, 0.999)
    for value in [0.0] + [1.0] * 21:
        nn.init.constant_(model.weight, value)
        average.update_parameters(model)
    assert next(average.parameters()).item() > 0.9


@pytest.mark.parametrize("schedule", ["cosine", "linear", "halve"])
def test_rates_rise_and_then_follow_their_schedule(schedule: str) -> None:
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    rates = make_schedule(optimiser, schedule, 0.2, 20)
    found = []
    for _ in range(20):
        found.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        rates.step()
    np.testing.assert_allclose(found[:4], [0.25, 0.5, 0.75, 1.0])
    after = np.arange(16) / 16
    expected = {"cosine": (1 + np.cos(np.pi * after)) / 2, "linear": 1 - after, "halve": after**0}
    np.testing.assert_allclose(found[4:], expected[schedule])


GOOD, AWFUL = "a movie is good", "a movie is awful and long"


def taught(config: RunConfig, run: Path, weight: float, **more: float) -> RunConfig:
    return changed(config, teacher=TeacherConfig(run=run, weight=weight, **more))


def goal(config: RunConfig, paths: Paths, cache: Path, kind: Kind = "classification") -> Objective:
    return make_objective(kind, config, classes=2, pipeline=paths.parser, cache=cache)


def test_targets_are_the_label_and_the_teacher_s_answer_mixed(
    config: RunConfig, finished: Paths, paths: Paths, tmp_path: Path
) -> None:
    examples = [
        Example((GOOD,), 1),
        Example((" ",), 0),  # nothing to read: the teacher does not know
        Example((AWFUL,), 0),
        Example((GOOD,), UNLABELLED),
    ]
    restored = restore(finished.run)
    answers = []
    for parse in Parser.load(paths.parser).parse((GOOD, AWFUL), config.max_tokens, tree=True):
        side = collate([restored.lexicon.sentence(parse.tokens, parse.heads)])
        answers.append(restored.model([side]).softmax(-1)[0].detach().numpy())
    mixing = goal(taught(config, finished.run, 0.75), paths, tmp_path / "cache")
    expected = [
        [0.75 * answers[0][0], 0.25 + 0.75 * answers[0][1]],
        [0.25 + 0.375, 0.375],
        [0.25 + 0.75 * answers[1][0], 0.75 * answers[1][1]],
        answers[0],
    ]
    np.testing.assert_allclose(mixing.targets(examples), expected, atol=1e-6)
    np.testing.assert_allclose(mixing.targets(examples), expected, atol=1e-6)  # from the cache


def test_a_pupil_learns_from_wrong_labels_what_its_teacher_knows(
    config: RunConfig, finished: Paths, paths: Paths, tmp_path: Path
) -> None:
    """With all the weight on the teacher the labels say nothing."""
    right = get(config.task).train[0].read(paths.data)
    cache = tmp_path / "cache"
    answers = probabilities(finished.run, right, classes=2, pipeline=paths.parser, cache=cache)
    wrong = [Example(one.texts, 1 - one.label) for one in right]
    learner = changed(taught(config, finished.run, 1), epochs=40, patience=40)
    np.testing.assert_allclose(goal(learner, paths, cache).targets(wrong), answers, atol=1e-6)

    mixing = goal(taught(config, finished.run, 0.5, min_teacher_label_prob=0.4), paths, cache)
    for asked in (right, wrong):
        labels = np.eye(2)[[int(one.label) for one in asked]]
        agreed = (answers * labels).sum(1, keepdims=True) >= 0.4
        expected = np.where(agreed, (answers + labels) / 2, labels)
        np.testing.assert_allclose(mixing.targets(asked), expected, atol=1e-6)
    assert not agreed.all()
    half = len(wrong) // 2
    certain = [Example(one.texts, one.label, trusted=True) for one in wrong[:half]]
    found = mixing.targets([*certain, *wrong[half:]])
    np.testing.assert_allclose(found[:half], labels[:half])
    np.testing.assert_allclose(found[half:], expected[half:], atol=1e-6)

    pupil = replace(paths, run=tmp_path / "pupil")
    record = train(learner, pupil)
    assert record["dev"]["value"] == 1.0
    assert run.read(pupil.run).training.teacher == str(finished.run)


def test_what_nobody_can_teach_is_refused_before_anything_is_parsed(
    config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    missing = taught(config, tmp_path / "none", 0.5)
    empty = replace(paths, cache=tmp_path / "empty")
    with pytest.raises(RunMissing, match=r"teacher\.run: .*none holds no run\.json: train it"):
        train(missing, empty)
    assert not empty.cache.exists()
    kinds: tuple[Kind, ...] = ("relatedness", "embedding")
    for kind in kinds:
        with pytest.raises(ConfigError, match=rf"teacher is for classes: .* a task of {kind}"):
            goal(missing, paths, paths.cache, kind)
    some = [Example((GOOD,), 1), Example((GOOD,), UNLABELLED)]
    with pytest.raises(ConfigError, match=r"no label: name a run in \[teacher\]"):
        goal(config, paths, paths.cache).targets(some)
