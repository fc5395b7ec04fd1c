"""TREC question types (Li and Roth 2002), the six coarse ones.

`trec-taught` adds questions without a label, which a teacher judges.

Reads the official `train_5500.label` and `TREC_10.label` (`DESC:manner How did ..`, Latin-1) or JSON lines.
"""

import random
from collections.abc import Sequence
from pathlib import Path

from heedful.training.data_folder import find
from heedful.training.tasks.base import UNLABELLED, Example, Reader, Source, Task
from heedful.training.tasks.labelled import UNSTATED, examples, json_lines, label_first
from heedful.training.tasks.nli import MNLI_TRAIN, SNLI_TRAIN
from heedful.training.tasks.splits import held_out

LABELS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


def _read(official: str, here: str) -> Reader:
    def read(data: Path) -> list[Example]:
        path = find(data, (official, f"trec/{official}", here), dataset="trec")
        if ".jsonl" in path.name:
            return examples(path, json_lines(path), LABELS)
        rows = label_first(path, " ", "latin-1")  # label:fine text
        return examples(path, ((label.partition(":")[0], text) for label, text in rows), LABELS)

    return read


TRAIN, DEV = held_out(_read("train_5500.label", "trec/train.jsonl"), 0.1)
TEST = _read("TREC_10.label", "trec/test.jsonl")
JOINED = 40_000


def joined(questions: Sequence[Example], number: int) -> list[Example]:
    """Up to `number` distinct texts: the beginning of one question with the end of another, unlabelled.

    Few of them make sense, but their words are those of questions (Tang et al. 2019, section 3.3, sample from
    n-grams for the same purpose).
    """
    rng = random.Random(1)
    found: dict[str, None] = {}
    for _ in range(20 * number):
        first, second = (one.texts[0].split() for one in rng.sample(questions, 2))
        begin, end = rng.randint(1, len(first)), rng.randint(1, len(second))
        found[" ".join([*first[:begin], *second[-end:]])] = None
        if len(found) == number:
            break
    return [Example((text,), UNLABELLED) for text in found]


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
_note = f"{JOINED:,} beginnings of questions joined with ends of others, without a label"
TASKS = (
    TREC,
    TREC.variant(
        "trec-taught",
        WHOLE,
        Source("trec", UNSTATED, _note, lambda data: joined(TRAIN(data), JOINED)),
    ),
)
