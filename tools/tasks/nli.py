"""Natural language inference: SNLI (Bowman et al. 2015), and SNLI with other datasets (`nli`).

Reads the official SNLI and MultiNLI JSON lines (`sentence1`, `sentence2`, `gold_label`; pairs without a
majority label, `-`, are left out) or JSON lines of `premise`, `hypothesis`, `label`.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.text.kinds import NLI_LABELS
from heedful.training.data_folder import find, read_each, records, text_of
from heedful.training.tasks.base import Example, Source, Task

SNLI_LICENCE = "CC BY-SA 4.0"
UNDECIDED = ("-", -1)
"""Labels of a pair whose annotators did not agree: the official files' and Hugging Face's."""
BROAD = {"non-entailment": "neutral"}
"""HANS does not tell neutral from contradiction."""
MNLI_LICENCE = "OANC, CC BY-SA 3.0 and others, by genre"


def pairs_of(*candidates: str, dataset: str) -> Callable[[Path], list[Example]]:
    """A reader of the pairs in the first of these files that exists."""

    def read(data: Path) -> list[Example]:
        path = find(data, candidates, dataset=dataset)
        examples = read_each(path, records(path), _example)
        return [example for example in examples if example]

    return read


def _example(record: dict[str, Any]) -> Example | None:
    """None for a pair without a majority label. Raises KeyError, ValueError."""
    official = "sentence1" in record
    premise = text_of(record, "sentence1" if official else "premise")
    hypothesis = text_of(record, "sentence2" if official else "hypothesis")
    label = record["gold_label" if "gold_label" in record else "label"]
    if label in UNDECIDED:
        return None
    return Example((premise, hypothesis), label_number(BROAD.get(label, label)))


def label_number(label: object) -> int:
    """The index of a label in NLI_LABELS. Raises ValueError."""
    if label not in NLI_LABELS:
        raise ValueError(f"label {label!r} is none of {', '.join(NLI_LABELS)}")
    return NLI_LABELS.index(label)


def _snli(split: str, *here: str, note: str = "whole") -> Source:
    official = (f"snli_1.0/snli_1.0_{split}.jsonl", f"snli_1.0_{split}.jsonl")
    return Source("snli", SNLI_LICENCE, note, pairs_of(*official, *here, dataset="snli"))


def _counterfactual(part: str, file: str) -> Source:
    read = pairs_of(f"nli_counterfactual/{file}.jsonl", dataset="nli_counterfactual")
    return Source(f"nli_counterfactual_{part}", "Apache-2.0", "whole", read)


def multinli(split: str, here: str, *, note: str) -> Source:
    """A split of MultiNLI, from the official file or from `here`."""
    official = (f"multinli_1.0/multinli_1.0_{split}.jsonl", f"multinli_1.0_{split}.jsonl")
    return Source("mnli", MNLI_LICENCE, note, pairs_of(*official, here, dataset="mnli"))


SNLI_TRAIN = _snli(
    "train",
    "snli/train_subset.jsonl",
    note="the official train split, or the subset of 104,872 pairs",
)
SNLI_DEV = _snli("dev", "snli/dev.jsonl")
SNLI_TEST = _snli("test", "snli/test.jsonl")
MNLI_TRAIN = multinli(
    "train", "mnli/train_subset.jsonl", note="the official train split, or a subset of 37,847 pairs"
)
COUNTERFACTUAL = _counterfactual("revised", "revised_combined_train")
MORE = (MNLI_TRAIN, _counterfactual("original", "original_train"), COUNTERFACTUAL)


SNLI = Task("snli", "nli", NLI_LABELS, (SNLI_TRAIN,), dev=SNLI_DEV, test=SNLI_TEST)
NLI = replace(SNLI, name="nli", train=(SNLI_TRAIN, *MORE))
TASKS = (SNLI, NLI)
