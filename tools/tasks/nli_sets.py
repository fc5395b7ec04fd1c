"""More sets of natural language inference, to train the shipped models or to score them."""

from itertools import permutations

from heedful.training.tasks.base import UNLABELLED, Example, Source
from tools.tasks.labelled import UNSTATED
from tools.tasks.nli import SNLI_LICENCE, SNLI_TRAIN, pairs_of

WIKIPEDIA = "CC BY-SA 3.0"


def _other(name: str, licence: str, file: str) -> Source:
    return Source(name, licence, "whole", pairs_of(file, dataset=name))


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
    Source(name, licence, "whole", pairs_of(f"text/nli/{file}.jsonl", dataset="text"))
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
    by_premise: dict[str, dict[str, None]] = {}
    for premise, hypothesis in (pair.texts for pair in pairs):
        by_premise.setdefault(premise, {})[hypothesis] = None
    return [
        Example((first, second), UNLABELLED)
        for group in by_premise.values()
        for first, second in permutations(group, 2)
    ]


SNLI_HYPOTHESES = Source(
    "snli",
    SNLI_LICENCE,
    "pairs of two hypotheses of one premise, without a label",
    lambda data: hypotheses(SNLI_TRAIN.read(data)),
)
