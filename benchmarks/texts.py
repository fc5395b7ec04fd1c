"""Distinct sentences from SNLI in a fixed random order."""

import random
from pathlib import Path

from heedful.training.data_folder import data_folder
from tools.tasks.nli import SNLI_TRAIN

DATA = data_folder()
SEED = 1


def sentences(number: int, data: Path = DATA) -> list[str]:
    """`number` different sentences. Raises DataMissing, or ValueError when there are fewer."""
    unique = sorted({text for pair in SNLI_TRAIN.read(data) for text in pair.texts})
    if number > len(unique):
        raise ValueError(
            f"{number} sentences are asked for and SNLI's train split has {len(unique)}"
        )
    return random.Random(SEED).sample(unique, number)


def groups(texts: list[str], size: int) -> list[list[str]]:
    """The texts in complete groups of `size`."""
    return [texts[start : start + size] for start in range(0, len(texts) - size + 1, size)]
