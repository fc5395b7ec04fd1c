"""Natural language inference: SNLI (Bowman et al. 2015), and SNLI with other datasets (`nli`).

Reads the official SNLI and MultiNLI JSON lines (`sentence1`, `sentence2`, `gold_label`; pairs without a
majority label, `-`, are left out) or JSON lines of `premise`, `hypothesis`, `label`.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

from heedful.text.kinds import NLI_LABELS
from heedful.training.data_folder import find, read_each, records, text_of
from heedful.training.tasks.base import UNLABELLED, Example, Source, Task
from heedful.training.tasks.labelled import UNSTATED

SNLI_LICENCE = "CC BY-SA 4.0"
WIKIPEDIA = "CC BY-SA 3.0"
UNDECIDED = ("-", -1)
"""Labels of a pair whose annotators did not agree: the official files' and Hugging Face's."""
BROAD = {"non-entailment": "neutral"}
"""HANS does not tell neutral from contradiction."""
MNLI_LICENCE = "OANC, CC BY-SA 3.0 and others, by genre"


def _read(*candidates: str, dataset: str) -> Callable[[Path], list[Example]]:
    def read(data: Path) -> list[Example]:
        path = find(data, candidates, dataset=dataset)
        found = read_each(path, records(path), _example)
        return [example for example in found if example]

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
    """The place of a label in NLI_LABELS. Raises ValueError."""
    if label not in NLI_LABELS:
        raise ValueError(f"label {label!r} is none of {', '.join(NLI_LABELS)}")
    return NLI_LABELS.index(label)


def _snli(split: str, *here: str, note: str = "whole") -> Source:
    official = (f"snli_1.0/snli_1.0_{split}.jsonl", f"snli_1.0_{split}.jsonl")
    return Source("snli", SNLI_LICENCE, note, _read(*official, *here, dataset="snli"))


def _counterfactual(part: str, file: str) -> Source:
    read = _read(f"nli_counterfactual/{file}.jsonl", dataset="nli_counterfactual")
    return Source(f"nli_counterfactual_{part}", "Apache-2.0", "whole", read)


def multinli(split: str, here: str, *, note: str) -> Source:
    """A split of MultiNLI, from the official file or from `here`."""
    official = (f"multinli_1.0/multinli_1.0_{split}.jsonl", f"multinli_1.0_{split}.jsonl")
    return Source("mnli", MNLI_LICENCE, note, _read(*official, here, dataset="mnli"))


SNLI_TRAIN = _snli(
    "train",
    "snli/train_subset.jsonl",
    note="the official train split, or the subset of 104,872 pairs",
)
SNLI_HYPOTHESES = Source(
    "snli",
    SNLI_LICENCE,
    "pairs of two hypotheses of one premise, without a label",
    lambda data: hypotheses(SNLI_TRAIN.read(data)),
)
SNLI_DEV = _snli("dev", "snli/dev.jsonl")
SNLI_TEST = _snli("test", "snli/test.jsonl")
MNLI_TRAIN = multinli(
    "train",
    "mnli/train_subset.jsonl",
    note="the official train split, or a subset of 37,847 pairs",
)
COUNTERFACTUAL = _counterfactual("revised", "revised_combined_train")
MORE = (MNLI_TRAIN, _counterfactual("original", "original_train"), COUNTERFACTUAL)


def _other(name: str, licence: str, file: str) -> Source:
    return Source(name, licence, "whole", _read(file, dataset=name))


NEW_PROTOCOLS_DEV = _other("nli_newprotocols", WIKIPEDIA, "nli_newprotocols/val.jsonl")
NEW_PROTOCOLS_TRAIN = _other("nli_newprotocols", WIKIPEDIA, "nli_newprotocols/train.jsonl")
CONJUNCTIONS = _other("nli_conj", "MIT", "nli_conj/train_adversarial.jsonl")
WIDE = (NEW_PROTOCOLS_TRAIN, CONJUNCTIONS)
"""Longer premises from Wikipedia, and sentences of which one part was exchanged."""
LING_IN_LOOP = _other("nli_ling_in_loop", UNSTATED, "nli_ling_in_loop/train.jsonl")
"""New hypotheses to 5,000 premises of MultiNLI's train split, none of which its matched dev split has."""
SEMI_AUTOMATIC = _other("nli_semi_automatic_wiki", WIKIPEDIA, "nli_semi_automatic_wiki/train.jsonl")
"""Premises from Wikipedia, whose hypotheses writers made of similar sentences."""

FEVER, HANS, HELP, SCONE = (
    Source(name, licence, "whole", _read(f"text/nli/{file}.jsonl", dataset="text"))
    for name, licence, file in (
        ("fever", WIKIPEDIA, "fever_dev_test"),
        ("hans", "MIT", "hans_generated"),
        ("help", "CC BY-SA 4.0", "help_and_or"),
        ("scone", "CC0 1.0", "scone_train"),
    )
)
"""Claims about sentences of Wikipedia without neutral ones; templates of syntax; monotonicity; negation."""


def hypotheses(pairs: list[Example]) -> list[Example]:
    """Every two distinct hypotheses of a premise as unlabelled pairs, in both orders."""
    said: dict[str, dict[str, None]] = {}
    for premise, hypothesis in (pair.texts for pair in pairs):
        said.setdefault(premise, {})[hypothesis] = None
    return [
        Example((first, second), UNLABELLED)
        for one in said.values()
        for first, second in permutations(one, 2)
    ]


SNLI = Task("snli", "nli", NLI_LABELS, (SNLI_TRAIN,), dev=SNLI_DEV, test=SNLI_TEST)
NLI = replace(SNLI, name="nli", train=(SNLI_TRAIN, *MORE))
TASKS = (SNLI, NLI)
