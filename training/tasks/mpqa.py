"""MPQA opinions (Wiebe et al. 2005): the polarity of a phrase.

Reads SentEval's `MPQA/mpqa.neg` and `MPQA/mpqa.pos` (a phrase a line) or JSON lines.
"""

from pathlib import Path

from heedful.training.tasks.base import Example
from heedful.training.tasks.labelled import UNSTATED
from heedful.training.tasks.senteval import BACKGROUND, by_label
from heedful.training.tasks.splits import ten_folds

FILES = {"negative": "MPQA/mpqa.neg", "positive": "MPQA/mpqa.pos"}
NOTE = (
    "whole; 2,363 of 10,603 phrases repeat another, so that three tenths of a fold's test phrases stand in its "
    "train or dev, as in the papers"
)


def read(data: Path) -> list[Example]:
    """Every example. Raises DataMissing, DataError."""
    return by_label(data, "mpqa", FILES, "utf-8")


TASKS = ten_folds("mpqa", tuple(FILES), UNSTATED, NOTE, read, background=BACKGROUND)
