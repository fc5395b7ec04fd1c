"""Reuters R8: the single-label documents of eight topics of Reuters-21578.

Reads the official `r8-train-all-terms.txt` and `r8-test-all-terms.txt` (label, tab, text) or JSON lines;
both are lower-cased and hold letters only.
"""

from pathlib import Path

from heedful.training.data_folder import find
from heedful.training.tasks.base import Example, Reader, Source, Task
from tools.tasks.labelled import UNSTATED, examples, held_out, json_lines, label_first

CODES = {
    "acq": "acquisition",
    "crude": "crude oil",
    "earn": "earnings",
    "grain": "grain",
    "interest": "interest rates",
    "money-fx": "foreign exchange",
    "ship": "shipping",
    "trade": "trade",
}
LABELS = tuple(CODES.values())


def _read(split: str) -> Reader:
    def read(data: Path) -> list[Example]:
        official = f"r8-{split}-all-terms.txt"
        path = find(data, (official, f"r8/{official}", f"r8/{split}.jsonl"), dataset="r8")
        rows = json_lines(path) if ".jsonl" in path.name else label_first(path, "\t")
        return examples(path, rows, LABELS, CODES)

    return read


TRAIN, DEV = held_out(_read("train"), 0.1)
TASKS = (
    Task(
        name="r8",
        kind="classification",
        labels=LABELS,
        train=(Source("r8", UNSTATED, "whole, but for the tenth that is dev", TRAIN),),
        dev=Source("r8", UNSTATED, "a tenth of the official train split", DEV),
        test=Source(
            "r8", UNSTATED, "whole; 4 of its 2,189 texts stand in train too", _read("test")
        ),
    ),
)
