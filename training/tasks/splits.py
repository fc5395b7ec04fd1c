"""Seeded splits: a dev split for a dataset without one, ten folds for one without a test split."""

import random
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from heedful.training.tasks.base import Example, Reader, Source, Task

SEED = 1
FOLDS = 10
Item = TypeVar("Item")


def stratified_split(
    examples: Sequence[Example],
    shares: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = SEED,
) -> list[list[Example]]:
    """Split into parts of these shares and one of the rest, stratified by label.

    Examples of one group (N values, one per example) stay together, under the label of the first.
    Each part keeps the order of `examples`.
    """
    keys: Sequence[Hashable] = range(len(examples)) if groups is None else groups
    label_of: dict[Hashable, float] = {}
    for key, example in zip(keys, examples, strict=True):
        label_of.setdefault(key, example.label)
    strata: dict[float, list[Hashable]] = {}
    for key, label in label_of.items():
        strata.setdefault(label, []).append(key)

    rng = np.random.default_rng(seed)
    part_of: dict[Hashable, int] = {}
    for label in sorted(strata):
        ends = np.rint(np.cumsum(shares) * len(strata[label]))
        places = rng.permutation(len(strata[label]))
        parts = np.searchsorted(ends, places, side="right").tolist()
        part_of.update(zip(strata[label], parts, strict=True))
    found: list[list[Example]] = [[] for _ in range(len(shares) + 1)]
    for key, example in zip(keys, examples, strict=True):
        found[part_of[key]].append(example)
    return found


def drawn(items: Sequence[Item], number: int, *, seed: int = SEED) -> list[Item]:
    """`number` of the items, or all in another order where there are fewer, and always the same."""
    return random.Random(seed).sample(items, min(number, len(items)))


def sample(source: Source, rows: int) -> Source:
    """At most so many of the source's examples, drawn with a fixed seed."""

    def read(data: Path) -> list[Example]:
        return drawn(source.read(data), rows)

    return replace(source, note=f"{source.note}; {rows:,} drawn at random", read=read)


def held_out(read: Reader, share: float) -> tuple[Reader, Reader]:
    """Readers of train and dev, where dev is this share of the examples."""

    def train(data: Path) -> list[Example]:
        return stratified_split(read(data), (share,))[1]

    def dev(data: Path) -> list[Example]:
        return stratified_split(read(data), (share,))[0]

    return train, dev


def ten_parts(
    name: str,
    labels: tuple[str, ...],
    licence: str,
    note: str,
    read: Reader,
    *,
    background: tuple[Source, ...] = (),
    fold: int = 0,
) -> Task:
    """A dataset in ten parts: `fold` is the test split, the next part dev, the other eight train."""
    dev = (fold + 1) % FOLDS
    train = [part for part in range(FOLDS) if part not in (fold, dev)]
    dataset = name.partition(":")[0]

    def source(*wanted: int) -> Source:
        def read_parts(data: Path) -> list[Example]:
            parts = stratified_split(read(data), (1 / FOLDS,) * (FOLDS - 1))
            return [example for part in wanted for example in parts[part]]

        share = f"{len(wanted)} of {FOLDS} parts, divided with seed {SEED}"
        return Source(dataset, licence, f"{note}; {share}", read_parts)

    return Task(
        name=name,
        kind="classification",
        labels=labels,
        train=(source(*train),),
        dev=source(dev),
        test=source(fold),
        background=background,
    )


def ten_folds(
    name: str,
    labels: tuple[str, ...],
    licence: str,
    note: str,
    read: Reader,
    *,
    background: tuple[Source, ...],
) -> tuple[Task, ...]:
    """The dataset in `ten_parts`, and its ten-fold cross-validation as the tasks `name:0` .. `name:9`."""
    make = partial(ten_parts, background=background)
    folds = (
        make(f"{name}:{fold}", labels, licence, note, read, fold=fold) for fold in range(FOLDS)
    )
    return (make(name, labels, licence, note, read), *folds)
