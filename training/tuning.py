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
"""Of the pairs for dev: so many at most."""
LEAST = 50
EPOCHS, BATCH = 5, 128
RATE = 2e-4
UNSTATED = "not stated: the user's own data"


def distinct(pairs: Iterable[Example]) -> list[Example]:
    """Each pair once. Raises DataError for fewer than LEAST."""
    found = list({one.texts: one for one in pairs}.values())
    if len(found) < LEAST:
        raise DataError(f"{len(found)} different pairs are too few: give {LEAST} at least")
    return found


def divided(pairs: Sequence[Example], seed: int) -> tuple[list[Example], list[Example]]:
    """The pairs to learn from, and those held out; pairs of one first text stay together."""
    firsts = list(dict.fromkeys(one.texts[0] for one in pairs))
    order = np.random.default_rng(seed).permutation(len(firsts)).tolist()
    count = min(MOST, max(1, round(SHARE * len(firsts))))
    held = {firsts[i] for i in order[:count]}
    return [one for one in pairs if one.texts[0] not in held], [
        one for one in pairs if one.texts[0] in held
    ]


def make_task(name: str, learned: list[Example], held: list[Example], seed: int) -> Task:
    """Dev has the held-out pairs with their scores; without any, 1, and 0 for each first text beside another second."""
    dev = [Example(one.texts[:2], one.label) for one in held]
    if any(one.label == UNLABELLED for one in held):
        others = np.roll(np.random.default_rng(seed).permutation(len(held)), 1)
        dev = [Example(one.texts[:2], 1.0) for one in held]
        dev += [
            Example((one.texts[0], held[j].texts[1]), 0.0)
            for one, j in zip(held, others.tolist(), strict=True)
            if held[j].texts[0] != one.texts[0]
        ]

    def source(examples: list[Example], note: str) -> Source:
        return Source(name, UNSTATED, note, lambda _: examples)

    train, held_out = source(learned, "pairs, without those held out"), source(dev, "held out")
    return Task(name, "embedding", (), (train,), held_out, held_out)


def make_config(
    bundle: RunConfig, folder: Path, licence: str, task: str, first: str, seed: int
) -> RunConfig:
    """`bundle` is the configuration of the one in `folder`, and `licence` what its card says: its weights are in the
    new one. `first` names its vectors of the pairs' texts.
    """
    return bundle.model_copy(
        update={
            "task": task,
            "init_from": folder,
            "words": bundle.words.model_copy(update={"four_bits": True, "subword_dropout": 0.0}),
            "distillation": bundle.distillation.model_copy(
                update={"teachers": (first,), "hard_batch_size": 0}
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
            # They are stored in few bits, and no pair has most of them.
            "freeze": ("words",),
            "teacher": None,
        }
    )


def score(vectors: dict[str, Floats], pairs: Sequence[Example], held: Sequence[Example]) -> float:
    """How well unit vectors, by text, do on the pairs held out: Spearman of the scores; without any, the nDCG@10 with
    which a first text finds its second among those of all pairs.
    """
    if held[0].label != UNLABELLED:
        cosines = [float(vectors[one.texts[0]] @ vectors[one.texts[1]]) for one in held]
        return spearman(np.array(cosines), np.array([one.label for one in held]))
    documents = {text: i for i, text in enumerate(dict.fromkeys(one.texts[1] for one in pairs))}
    gains: dict[str, dict[int, float]] = {}
    for one in held:
        gains.setdefault(one.texts[0], {})[documents[one.texts[1]]] = 1.0
    asked = np.stack([vectors[text] for text in gains])
    return ndcg(asked @ np.stack([vectors[text] for text in documents]).T, list(gains.values()))
