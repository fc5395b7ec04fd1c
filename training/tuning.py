"""A user's pairs of texts and a bundle -> the task and the configuration that `heedful tune` trains."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from heedful.text.arrays import Floats
from heedful.training.config import OptimiserConfig, PairsConfig, RunConfig
from heedful.training.errors import DataError
from heedful.training.metrics import ndcg, spearman
from heedful.training.tasks.base import UNLABELLED, Example, Source, Task

SHARE, MOST = 0.1, 1_000
"""Share of the pairs to hold out, and how many at most."""
LEAST = 50
EPOCHS, BATCH = 5, 128
RATE = 2e-4
UNSTATED = "not stated: the user's own data"


def distinct(pairs: Iterable[Example]) -> list[Example]:
    """Each pair once. Raises DataError for fewer than LEAST."""
    by_texts = {pair.texts: pair for pair in pairs}
    if len(by_texts) < LEAST:
        raise DataError(f"{len(by_texts)} different pairs are too few: give {LEAST} at least")
    return list(by_texts.values())


def split(pairs: Sequence[Example], seed: int) -> tuple[list[Example], list[Example]]:
    """The pairs to train on, and those to hold out; pairs with the same first text stay together."""
    firsts = list(dict.fromkeys(pair.texts[0] for pair in pairs))
    order = np.random.default_rng(seed).permutation(len(firsts)).tolist()
    count = min(MOST, max(1, round(SHARE * len(firsts))))
    held = {firsts[i] for i in order[:count]}
    train = [pair for pair in pairs if pair.texts[0] not in held]
    return train, [pair for pair in pairs if pair.texts[0] in held]


def make_task(name: str, learned: list[Example], held: list[Example], seed: int) -> Task:
    """Dev has the held-out pairs with their scores; without scores 1, and 0 for each first text with another second."""
    dev = [Example(pair.texts[:2], pair.label) for pair in held]
    if any(pair.label == UNLABELLED for pair in held):
        others = np.roll(np.random.default_rng(seed).permutation(len(held)), 1)
        dev = [Example(pair.texts[:2], 1.0) for pair in held]
        dev += [
            Example((pair.texts[0], held[j].texts[1]), 0.0)
            for pair, j in zip(held, others.tolist(), strict=True)
            if held[j].texts[0] != pair.texts[0]
        ]

    def source(examples: list[Example], note: str) -> Source:
        return Source(name, UNSTATED, note, lambda _: examples)

    train, held_out = source(learned, "pairs, without those held out"), source(dev, "held out")
    return Task(name, "embedding", (), (train,), held_out, held_out)


def make_config(
    bundle: RunConfig, folder: Path, licence: str, task: str, teacher: str, seed: int
) -> RunConfig:
    """`bundle`, the configuration in `folder`, for pairs, with its card's `licence`, because the new bundle has its
    weights; `teacher` is the file of its vectors of the pairs' texts.
    """
    return bundle.model_copy(
        update={
            "task": task,
            "init_from": folder,
            "words": bundle.words.model_copy(update={"four_bits": True, "subword_dropout": 0.0}),
            "distillation": bundle.distillation.model_copy(
                update={"teachers": (teacher,), "hard_batch_size": 0}
            ),
            "pairs": PairsConfig(),
            "optimiser": OptimiserConfig(
                batch=BATCH, rate=RATE, word_lr=RATE, ema_decay=0.98, precision="bfloat16"
            ),
            "epochs": EPOCHS,
            "patience": 3,
            "seed": seed,
            "licence": licence,
            "train_rows": None,
            "extra_dev_tasks": (),
            # The bundle stores them in 4 bits, and most words are in no pair.
            "freeze": ("words",),
            "teacher": None,
        }
    )


def score(vectors: dict[str, Floats], pairs: Sequence[Example], held: Sequence[Example]) -> float:
    """The score of unit vectors, by text, on the held-out pairs: Spearman's correlation with their scores, or without
    scores the nDCG@10 of a search for each first text's partners among the second texts of all pairs.
    """
    if held[0].label != UNLABELLED:
        cosines = [float(vectors[pair.texts[0]] @ vectors[pair.texts[1]]) for pair in held]
        return spearman(np.array(cosines), np.array([pair.label for pair in held]))
    seconds = dict.fromkeys(pair.texts[1] for pair in pairs)
    documents = {text: number for number, text in enumerate(seconds)}
    gains: dict[str, dict[int, float]] = {}
    for pair in held:
        gains.setdefault(pair.texts[0], {})[documents[pair.texts[1]]] = 1.0
    queries = np.stack([vectors[text] for text in gains])
    return ndcg(queries @ np.stack([vectors[text] for text in documents]).T, list(gains.values()))
