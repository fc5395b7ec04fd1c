"""Train the arc parser (`tools.parser.model`) on soft trees of the teacher and on the treebank."""

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import spacy
import torch
from rich.console import Console
from spacy.language import Language
from torch import Tensor, nn
from torch.nn import functional

from heedful.text.tokenize import NAME
from heedful.training import checkpoint
from heedful.training.optimise import make_schedule, moving_average
from tools.parser import corpus as corpora
from tools.parser import soft_trees, teacher, treebank
from tools.parser.corpus import Batch, Corpus, Reader
from tools.parser.model import ArcParser

TABLES = (5000, 2000, 2500, 2000)
"""Rows of the hash tables of NORM, PREFIX, SUFFIX and SHAPE, as in spaCy's pipelines."""
GOLD_TIMES = 2
"""How often an epoch reads the treebank; it reads the silver trees once."""
WARM_UP = 100
SECONDS_BETWEEN_CHECKPOINTS = 60
AVERAGE = 0.99
"""Decay of the moving average of the weights."""


@dataclass(frozen=True, slots=True)
class Stage:
    epochs: float
    rate: float
    dropout: float


STAGES = (Stage(4.5, 2e-3, 0.1), Stage(4.5, 1e-3, 0.0))


@dataclass(frozen=True, slots=True)
class Trained:
    """A model, its labels, and the pipeline whose tokens it reads."""

    model: ArcParser
    labels: tuple[str, ...]
    nlp: Language


def train_arc_parser(
    data: Path,
    *,
    seed: int,
    cache: Path,
    console: Console,
    width: int = 128,
    stages: Sequence[Stage] = STAGES,
) -> Trained:
    """Train the teacher, let it parse, and train the parser; steps whose results are in `cache` are not repeated.

    Raises DataMissing.
    """
    nlp = blank()
    documents = {split: treebank.sentences(data, split) for split in ("train", "dev")}
    trees = teacher_of(nlp, documents, seed=seed, cache=cache, console=console)
    folder = cache / f"soft-{seed}"
    soft_trees.write(trees, nlp, soft_trees.plain_texts(data, seed), folder, console)
    labels = trees.relations
    learned, silver = (
        corpora.gold(nlp, documents["train"], labels),
        corpora.silver(nlp, soft_trees.load(folder)),
    )
    dev = corpora.gold(nlp, documents["dev"], labels)
    model = ArcParser(tables=TABLES, relations=len(labels), width=width)
    file = cache / f"arc-{width}-{seed}.pt"
    train(model, learned, silver, dev, seed=seed, file=file, console=console, stages=stages)
    return Trained(model.eval(), labels, nlp)


def blank() -> Language:
    """A pipeline with the shipped tokenizer."""
    return spacy.blank("en", config={"nlp": {"tokenizer": {"@tokenizers": NAME}}})


def teacher_of(
    nlp: Language,
    documents: dict[str, list[spacy.tokens.Doc]],
    *,
    seed: int,
    cache: Path,
    console: Console,
) -> teacher.TreeTeacher:
    """The teacher in `cache`; it is trained first if it is missing."""
    cache.mkdir(parents=True, exist_ok=True)
    gold = [
        [
            sentence
            for sentence in teacher.aligned(nlp, treebank.grouped(documents["train"], seed + epoch))
            if len(sentence) <= teacher.LONGEST
        ]
        for epoch in range(teacher.EPOCHS)
    ]
    dev = teacher.aligned(nlp, documents["dev"])
    file = cache / f"teacher-{seed}.pt"
    return teacher.load_or_train(gold, file, seed=seed, dev=dev, console=console)


def train(
    model: ArcParser,
    gold: Corpus,
    silver: Corpus,
    dev: Corpus,
    *,
    seed: int,
    file: Path,
    console: Console,
    stages: Sequence[Stage] = STAGES,
) -> None:
    """All stages, with AdamW and a rate that falls along a cosine; a stage's weights are averaged at its end.

    The state is saved in `file`: an interrupted run continues from it, and a finished one is loaded.
    """
    state: dict[str, Any] = checkpoint.load(file) if file.exists() else {"stage": 0, "step": 0}
    if "weights" in state:
        model.load_state_dict(state["weights"])
    reader = Reader(corpora.concatenated(gold, silver), TABLES)
    dev_reader = Reader(dev, TABLES)
    for number, stage in enumerate(stages):
        if number < state["stage"]:
            continue
        torch.manual_seed(seed + number)  # a stage draws the same after an interruption
        batches = list(_batches(reader.corpus, len(gold), stage.epochs, seed + number))
        run = _Run(model, stage, batches, reader)
        run.resume(state)
        run(file, number, console, lambda: accuracy(model, dev_reader))
        state = {"stage": number + 1, "step": 0}
        checkpoint.save(file, {**state, "weights": model.state_dict()})


class _Run:
    """One stage, step by step."""

    def __init__(
        self, model: ArcParser, stage: Stage, batches: Sequence[list[list[int]]], reader: Reader
    ) -> None:
        self.model, self.batches, self.reader, self.stage = model, batches, reader, stage
        self.step = 0
        self.optimiser = torch.optim.AdamW(
            model.parameters(), lr=stage.rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True
        )
        steps = len(batches)
        self.schedule = make_schedule(self.optimiser, "cosine", WARM_UP / steps, steps)
        self.mean = moving_average(model, AVERAGE)

    def resume(self, state: dict[str, Any]) -> None:
        """Continue after `state["step"]`."""
        self.step = state["step"]
        for name in ("optimiser", "schedule", "mean"):
            if name in state:
                getattr(self, name).load_state_dict(state[name])
        if "rng" in state:
            torch.set_rng_state(state["rng"])

    def __call__(
        self, file: Path, number: int, console: Console, measure: Callable[[], tuple[float, float]]
    ) -> None:
        saved = began = time.monotonic()
        words = 0
        for texts in self.batches[self.step :]:
            batch = self.reader.batch(texts)
            self._learn(batch)
            words += int((batch.places > 0).sum())
            self.step += 1
            if time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS:
                saved = time.monotonic()
                self._save(file, number)
                uas, las = measure()
                console.print(
                    f"stage {number + 1}: step {self.step} of {len(self.batches)}, "
                    f"{words / (saved - began):.0f} words a second, dev {uas:.4f} / {las:.4f}"
                )
        self.model.load_state_dict(self.mean.module.state_dict())
        uas, las = measure()
        console.print(f"stage {number + 1}: done, dev {uas:.4f} / {las:.4f}")

    def _learn(self, batch: Batch) -> None:
        self.model.train()
        self.model.dropout.p = self.stage.dropout
        value = loss(self.model, batch)
        self.optimiser.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.schedule.step()
        self.mean.update_parameters(self.model)

    def _save(self, file: Path, number: int) -> None:
        parts: dict[str, Any] = {
            "optimiser": self.optimiser,
            "schedule": self.schedule,
            "mean": self.mean,
        }
        states = {name: part.state_dict() for name, part in parts.items()}
        position = {"stage": number, "step": self.step, "rng": torch.get_rng_state()}
        checkpoint.save(file, {"weights": self.model.state_dict(), **position, **states})


def loss(model: ArcParser, batch: Batch) -> Tensor:
    """Cross-entropy of heads, and of relations to the likeliest head, with the shares as targets."""
    with torch.autocast("cpu", torch.bfloat16):
        scores, dependents, governors = model(batch.rows, batch.places)
        best = batch.heads[..., 0]
        names = model.relations(dependents, governors, (best - 1).clamp(min=0))
    name_shares = batch.name_shares * (best > 0)[..., None]  # a root's relation is known
    return _cross_entropy(scores, batch.heads, batch.head_shares) + _cross_entropy(
        names, batch.names, name_shares
    )


def _cross_entropy(scores: Tensor, values: Tensor, shares: Tensor) -> Tensor:
    """Scores (B, L, n), the numbers (B, L, CANDIDATES) of right answers and their shares -> ()."""
    chosen = functional.log_softmax(scores.float(), -1).gather(-1, values)
    return -(shares * chosen).sum() / shares.sum().clamp(min=1)


def accuracy(model: ArcParser, reader: Reader) -> tuple[float, float]:
    """Shares of words whose best head, and best head and relation, are right, before cycles are broken.

    A root needs no relation. Punctuation counts, words without a head do not.
    """
    model.eval()
    right = labelled = known = 0
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for texts in corpora.single(reader.corpus):
            batch = reader.batch(texts)
            scores, dependents, governors = model(batch.rows, batch.places)
            best = scores.argmax(-1)
            names = model.relations(dependents, governors, (best - 1).clamp(min=0)).argmax(-1)
            aligned = batch.head_shares[..., 0] > 0
            hit = (best == batch.heads[..., 0]) & aligned
            known += int(aligned.sum())
            right += int(hit.sum())
            labelled += int((hit & ((names == batch.names[..., 0]) | (best == 0))).sum())
    return right / known, labelled / known


def _batches(corpus: Corpus, gold: int, epochs: float, seed: int) -> Iterator[list[list[int]]]:
    """The batches of all epochs. The first `gold` texts of the corpus are the treebank's, in its order."""
    rng = random.Random(seed)
    rest = range(gold, len(corpus))
    for epoch in range(math.ceil(epochs)):
        orders = [*[range(gold)] * GOLD_TIMES, rng.sample(rest, len(rest))]
        share = min(1.0, epochs - epoch)
        batches = corpora.joined(corpus, orders, rng)
        yield from batches[: round(share * len(batches))]
