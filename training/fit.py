"""A user's labelled texts -> the task and the configuration that `heedful fit` trains."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from heedful.text.kinds import NLI_LABELS
from heedful.training.assess import most_texts, splits
from heedful.training.config import (
    Device,
    EncoderConfig,
    HeadConfig,
    OptimiserConfig,
    RunConfig,
    WordsConfig,
)
from heedful.training.errors import DataError
from heedful.training.labelled_texts import Row, group_key
from heedful.training.tasks.base import UNLABELLED, Example, Reader, Source, Task

EPOCHS = 6
COMMON_WORDS = 30_000
"""Frequent words added to those of the user's texts, because later texts hold other words."""
WORDS_A_TEXT = 100
DIM = 300
UNSTATED = "not stated: the user's own data"


def make_task(
    rows: Sequence[Row],
    file: Path,
    *,
    words: Sequence[str],
    seed: int,
    held: Collection[int] | None = None,
) -> Task:
    """The rows numbered in `held` are test; of the others dev is a tenth, or more of few rows: `assess.splits`.

    Texts that are equal but for white space are in the same part, and so are pairs with the same first text. Where
    `held` is None, nothing is held out: dev is a part of train.

    `words` are added to the vocabulary. Raises DataError where the labels of pairs are not those of NLI,
    or where there are too few rows for dev.
    """
    labels = tuple(sorted({row.label for row in rows}))
    pairs = len(rows[0].texts) == 2
    if pairs and set(labels) != set(NLI_LABELS):
        raise DataError(
            f"{file.name}: pairs are answered by /nli, whose labels are {', '.join(NLI_LABELS)}, all three; "
            f"here they are {', '.join(labels[:10])}: rename them, or join the two texts in one column"
        )
    examples = [Example(row.texts, labels.index(row.label)) for row in rows]
    test = [example for i, example in enumerate(examples) if i in (held or ())]
    others = [example for i, example in enumerate(examples) if i not in (held or ())]
    groups = [group_key(example.texts) for example in others]
    targets = np.eye(len(labels), dtype=bool)[[int(example.label) for example in others]]
    if most_texts(targets, groups) < 2:
        raise DataError(
            f"{file.name}: {len(rows)} rows of {len(labels)} labels are too few to hold some of each "
            f"label out, twice: give ten texts a label"
        )
    part = splits(targets, groups, seed=seed, most=0)[0]
    dev = [others[i] for i in part.held]
    train = others if held is None else [others[i] for i in part.train]

    def source(part: list[Example], note: str) -> Source:
        return Source(file.stem, UNSTATED, f"{note}, divided with seed {seed}", _reader(part))

    return Task(
        name=file.stem,
        kind="nli" if pairs else "classification",
        labels=labels,
        train=(source(train, "all rows" if held is None else "nine tenths of those not held out"),),
        dev=source(dev, "a tenth"),
        test=source(test, "held out"),
        background=(Source("words", UNSTATED, "vocabulary only", _reader(_as_texts(words))),),
    )


def make_config(
    task: Task,
    *,
    encoder: str,
    word_vectors: str,
    size: int,
    seed: int,
    epochs: int = EPOCHS,
    device: Device = "cpu",
) -> RunConfig:
    """Settings that work well on sentence datasets of 3,000 to 10,000 rows (docs/notes/fit.md)."""
    return RunConfig(
        task=task.name,
        encoder=EncoderConfig(name=encoder),
        words=WordsConfig(
            vectors=word_vectors, dim=min(DIM, size), init_rms=3.0, background_min_count=1
        ),
        head=HeadConfig(dropout=0.3),
        optimiser=OptimiserConfig(batch=32, rate=1e-3, word_lr=5e-4, ema_decay=0.95),
        epochs=epochs,
        patience=2,
        seed=seed,
        licence=UNSTATED,
        device=device,
    )


def _reader(examples: list[Example]) -> Reader:
    return lambda _: examples


def _as_texts(words: Sequence[str]) -> list[Example]:
    """The words as a few long texts, which parse faster than many short ones."""
    starts = range(0, len(words), WORDS_A_TEXT)
    return [
        Example((" ".join(words[start : start + WORDS_A_TEXT]),), UNLABELLED) for start in starts
    ]
