"""Ten folds of a dataset without a test split, and samples that are always the same."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from heedful.training.tasks.base import Example, Reader, Source, Task
from tools.tasks.splits import SEED, stratified_split

FOLDS = 10
Item = TypeVar("Item")


def drawn(items: Sequence[Item], number: int, *, seed: int = SEED) -> list[Item]:
    """`number` items in random order, or all where there are fewer; always the same."""
    return random.Random(seed).sample(items, min(number, len(items)))


def sample(source: Source, rows: int) -> Source:
    """At most so many of the source's examples, drawn with a fixed seed."""

    def read(data: Path) -> list[Example]:
        return drawn(source.read(data), rows)

    return replace(source, note=f"{source.note}; {rows:,} drawn at random", read=read)


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

    def source(*numbers: int) -> Source:
        def read_parts(data: Path) -> list[Example]:
            parts = stratified_split(read(data), (1 / FOLDS,) * (FOLDS - 1))
            return [example for number in numbers for example in parts[number]]

        share = f"{len(numbers)} of {FOLDS} parts, divided with seed {SEED}"
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
