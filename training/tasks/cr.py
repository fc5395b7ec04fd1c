"""Customer reviews (Hu and Liu 2004): a sentence praises the product, or does not.

Reads SentEval's `CR/custrev.neg` and `CR/custrev.pos` (a sentence a line) or JSON lines.
"""

from pathlib import Path

from heedful.training.tasks.base import Example
from heedful.training.tasks.labelled import UNSTATED
from heedful.training.tasks.senteval import BACKGROUND, by_label
from heedful.training.tasks.splits import ten_folds

FILES = {"negative": "CR/custrev.neg", "positive": "CR/custrev.pos"}
NOTE = "whole; 6 sentences stand there twice"


def read(data: Path) -> list[Example]:
    """Every example. Raises DataMissing, DataError."""
    return by_label(data, "cr", FILES, "utf-8")


TASKS = ten_folds("cr", tuple(FILES), UNSTATED, NOTE, read, background=BACKGROUND)
