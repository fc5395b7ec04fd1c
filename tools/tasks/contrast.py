"""Pairs whose sentences differ in one content word (`contrast`): a synonym, a hypernym or a word that excludes it.

`python -m tools contrast` makes them: no word replaced in a dev pair is replaced in a train pair. The dev pairs,
with which models are scored, are next to this file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.text.kinds import NLI_LABELS
from heedful.training.data_folder import find, read_each, records, text_of
from heedful.training.tasks.base import Example, Source, Task
from tools.tasks.nli import MNLI_LICENCE, SNLI_LICENCE, SNLI_TEST, label_number

FILE = "contrast/{}.jsonl"
DEV_FILE = Path(__file__).with_name("contrast_dev.jsonl.gz")
TRAIN_PAIRS, DEV_PAIRS = 60_000, 2_000


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its copy with one word replaced by one that is its `kind`: synonym, hypernym, .."""

    texts: tuple[str, str]
    label: str
    kind: str


def read_pairs(data: Path, *, dev: bool) -> list[Pair]:
    """The pairs of the data folder, or the dev pairs next to this file. Raises DataMissing, DataError."""
    name = FILE.format("dev" if dev else "train")
    here = dev and not (data / name).is_file()
    path = DEV_FILE if here else find(data, (name,), dataset="contrast")
    return list(read_each(path, records(path), _pair))


def _pair(row: Mapping[str, Any]) -> Pair:
    label = NLI_LABELS[label_number(row["label"])]
    return Pair((text_of(row, "premise"), text_of(row, "hypothesis")), label, text_of(row, "kind"))


def _source(split: str, number: int) -> Source:
    def read(data: Path) -> list[Example]:
        pairs = read_pairs(data, dev=split == "dev")
        return [Example(pair.texts, NLI_LABELS.index(pair.label)) for pair in pairs]

    licence = f"{SNLI_LICENCE}; {MNLI_LICENCE}; CC BY-SA 3.0; words: WordNet 3.0"
    note = f"{number:,} pairs made of {split} premises of SNLI, MultiNLI and New Protocols"
    return Source("contrast", licence, note, read)


TRAIN, DEV = _source("train", TRAIN_PAIRS), _source("dev", DEV_PAIRS)
TASKS = (Task("contrast", "nli", NLI_LABELS, (TRAIN,), DEV, SNLI_TEST),)
