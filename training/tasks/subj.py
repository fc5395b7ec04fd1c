"""SUBJ (Pang and Lee 2004): whether a sentence gives an opinion or tells the plot.

Reads the official `plot.tok.gt9.5000` and `quote.tok.gt9.5000` (Windows-1252), SentEval's
`SUBJ/subj.objective` and `SUBJ/subj.subjective`, or JSON lines.
"""

from pathlib import Path

from heedful.training.tasks.base import Example
from heedful.training.tasks.labelled import UNSTATED
from heedful.training.tasks.senteval import BACKGROUND, by_label
from heedful.training.tasks.splits import ten_folds

OFFICIAL = {"objective": "plot.tok.gt9.5000", "subjective": "quote.tok.gt9.5000"}
SENTEVAL = {"objective": "SUBJ/subj.objective", "subjective": "SUBJ/subj.subjective"}


def read(data: Path) -> list[Example]:
    """Every example. Raises DataMissing, DataError."""
    official = all((data / file).is_file() for file in OFFICIAL.values())
    return by_label(data, "subj", OFFICIAL if official else SENTEVAL, "cp1252")


TASKS = ten_folds("subj", tuple(OFFICIAL), UNSTATED, "whole", read, background=BACKGROUND)
