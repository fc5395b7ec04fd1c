"""Natural language inference: SNLI (Bowman et al. 2015), SNLI with other sets added (`nli`), and either with
pairs that only a teacher can judge (`snli-taught`, `nli-taught`).

Reads the official SNLI and MultiNLI JSON lines (`sentence1`, `sentence2`, `gold_label`; pairs without a
majority label are left out) or JSON lines of `premise`, `hypothesis`, `label`.
"""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

from heedful.training.tasks.base import UNLABELLED, Example, Source, Task, find, records

LABELS = ("entailment", "neutral", "contradiction")
SNLI_LICENCE = "CC BY-SA 4.0"
MNLI_LICENCE = "OANC, CC BY-SA 3.0 and others, by genre"


def _read(*candidates: str, get_from: str) -> Callable[[Path], list[Example]]:
    def read(data: Path) -> list[Example]:
        examples = []
        for record in records(find(data, candidates, get_from=get_from)):
            label = record.get("gold_label", record.get("label"))
            if label in LABELS:
                official = "sentence1" in record
                premise = record["sentence1" if official else "premise"]
                hypothesis = record["sentence2" if official else "hypothesis"]
                examples.append(Example((premise, hypothesis), LABELS.index(label)))
        return examples

    return read


def _snli(split: str, *here: str, note: str = "whole") -> Source:
    site = "https://nlp.stanford.edu/projects/snli/ (snli_1.0.zip)"
    official = (f"snli_1.0/snli_1.0_{split}.jsonl", f"snli_1.0_{split}.jsonl")
    return Source("snli", SNLI_LICENCE, note, _read(*official, *here, get_from=site))


def _other(name: str, licence: str, *files: str, note: str = "whole", get_from: str) -> Source:
    return Source(name, licence, note, _read(*files, get_from=get_from))


def multinli(split: str, here: str, *, note: str) -> Source:
    """A split of MultiNLI, from the official file or from `here`."""
    official = (f"multinli_1.0/multinli_1.0_{split}.jsonl", f"multinli_1.0_{split}.jsonl")
    site = "https://cims.nyu.edu/~sbowman/multinli/ (multinli_1.0.zip)"
    return _other("mnli", MNLI_LICENCE, *official, here, note=note, get_from=site)


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
MORE = (
    MNLI_TRAIN,
    _other(
        "nli_counterfactual_original",
        "Apache-2.0",
        "nli_counterfactual/original_train.jsonl",
        get_from="https://github.com/acmi-lab/counterfactually-augmented-data",
    ),
    _other(
        "nli_counterfactual_revised",
        "Apache-2.0",
        "nli_counterfactual/revised_combined_train.jsonl",
        get_from="https://github.com/acmi-lab/counterfactually-augmented-data",
    ),
)


def hypotheses(pairs: list[Example]) -> list[Example]:
    """Each two distinct hypotheses of one premise, as two pairs without a label: one for each order."""
    said: dict[str, dict[str, None]] = {}
    for premise, hypothesis in (pair.texts for pair in pairs):
        said.setdefault(premise, {})[hypothesis] = None
    return [
        Example((first, second), UNLABELLED)
        for one in said.values()
        for first, second in permutations(one, 2)
    ]


def _task(name: str, train: tuple[Source, ...]) -> Task:
    return Task(name=name, kind="nli", labels=LABELS, train=train, dev=SNLI_DEV, test=SNLI_TEST)


TASKS = (
    _task("snli", (SNLI_TRAIN,)),
    _task("snli-taught", (SNLI_TRAIN, SNLI_HYPOTHESES)),
    _task("nli", (SNLI_TRAIN, *MORE)),
    _task("nli-taught", (SNLI_TRAIN, *MORE, SNLI_HYPOTHESES)),
)
