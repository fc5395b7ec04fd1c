"""TREC question types (Li and Roth 2002), the six coarse ones.

Reads the official `train_5500.label` and `TREC_10.label` (`DESC:manner How did ..`, Latin-1) or JSON lines.
"""

from pathlib import Path

from heedful.training.data_folder import find
from heedful.training.tasks.base import Example, Reader, Source, Task
from tools.tasks.labelled import UNSTATED, examples, held_out, json_lines, label_first
from tools.tasks.nli import MNLI_TRAIN, SNLI_TRAIN

CODES = {
    "ABBR": "abbreviation",
    "DESC": "description",
    "ENTY": "entity",
    "HUM": "person",
    "LOC": "location",
    "NUM": "number",
}
LABELS = tuple(CODES.values())


def _read(official: str, here: str) -> Reader:
    def read(data: Path) -> list[Example]:
        path = find(data, (official, f"trec/{official}", here), dataset="trec")
        if ".jsonl" in path.name:
            return examples(path, json_lines(path), LABELS, CODES)
        rows = label_first(path, " ", "latin-1")  # label:fine text
        coarse = ((label.partition(":")[0], text) for label, text in rows)
        return examples(path, coarse, LABELS, CODES)

    return read


TRAIN, DEV = held_out(_read("train_5500.label", "trec/train.jsonl"), 0.1)
TEST = _read("TREC_10.label", "trec/test.jsonl")

WHOLE = Source("trec", UNSTATED, "whole, but for the tenth that is dev", TRAIN)
TREC = Task(
    name="trec",
    kind="classification",
    labels=LABELS,
    train=(WHOLE,),
    dev=Source("trec", UNSTATED, "a tenth of the official train split", DEV),
    test=Source("trec", UNSTATED, "whole; 11 of its 500 questions stand in train too", TEST),
    background=(MNLI_TRAIN, SNLI_TRAIN),
)
TASKS = (TREC,)
