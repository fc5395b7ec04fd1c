"""Pairs about negation and quantifiers (`negation`).

They come from the templates of `negation.toml`, from SNLI's premises and from sentences that differ in one word
(`contrast`). Train and dev share neither templates nor the nouns, verbs and adjectives in them.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks.base import Example, Source, Task
from tools.tasks import contrast
from tools.tasks.nli import SNLI_TEST, SNLI_TRAIN
from tools.tasks.templates import from_templates, pair

FILE = "negation.toml"
SEED = 1
TEMPLATE_PAIRS, PREMISE_PAIRS, SUBSTITUTION_PAIRS, DEV_PAIRS = 30_000, 6_000, 12_000, 300
_MAIN = re.compile(r"(A|An|The|Two|Three|Four|Five)( .*?)? (is|are) (\w+ing)\b(.*)")
_QUANTIFIED = re.compile(r"(?:Two|Three|Four|Five|Six|Several) (.*)")


def _clause(text: str) -> tuple[str, ...] | None:
    """Determiner, subject, is or are, participle and end of a sentence that "not" negates as a whole."""
    main = None if '"' in text else _MAIN.fullmatch(text)
    if main is None or re.search(
        r"\b(and|while|as|who|that|which|is|are|no|not|nobody)\b", main[5]
    ):
        return None
    parts = tuple(part or "" for part in main.groups())
    return None if re.search(r"\b(and|who|that|which|while)\b|,", parts[1]) else parts


def _claims_one(determiner: str, verb: str) -> bool:
    """Whether the clause states existence, so that "No" denies it."""
    return determiner != "The" and (verb == "is" or determiner not in {"A", "An"})


def _denials(clause: tuple[str, ...]) -> Iterator[str]:
    """The clause with "not", and with "No" where that denies it."""
    determiner, rest, verb, doing, end = clause
    yield f"{determiner}{rest} {verb} not {doing}{end}"
    if _claims_one(determiner, verb):
        yield f"No{rest} {verb} {doing}{end}"


def _negated(premise: str) -> Iterator[Example]:
    """A premise with its negation or a quantifier, in both directions where the label is the same."""
    if clause := _clause(premise):
        for denial in _denials(clause):
            yield pair(premise, denial, "contradiction")
            yield pair(denial, premise, "contradiction")
        determiner, rest, verb, doing, end = clause
        if _claims_one(determiner, verb):
            yield pair(premise, f"Nobody is {doing}{end}", "contradiction")
            there = f"There {verb} {determiner.lower()}{rest} {doing}{end}"
            yield pair(premise, there, "entailment")
    if quantified := _QUANTIFIED.fullmatch(premise):
        yield pair(premise, f"Some {quantified[1]}", "entailment")
        yield pair(f"Some {quantified[1]}", premise, "neutral")
        yield pair(premise, f"All {quantified[1]}", "neutral")


def _substituted(changed: contrast.Pair) -> Iterator[Example]:
    """Denials of two sentences that differ in one word."""
    clauses = [clause for text in changed.texts if (clause := _clause(text))]
    if len(clauses) < 2:
        return
    for denials in zip(*map(_denials, clauses), strict=False):
        if denials[0] == denials[1]:  # the number that was replaced is gone
            continue
        if changed.label == "contradiction":  # neither sentence follows when the other is denied
            yield pair(denials[0], changed.texts[1], "neutral")
            yield pair(denials[1], changed.texts[0], "neutral")
        elif changed.kind == "hypernym":
            order = -1 if changed.label == "neutral" else 1  # the narrower word's sentence first
            narrow, wide = denials[::order]
            statement = changed.texts[::order][0]
            yield pair(wide, narrow, "entailment")
            yield pair(narrow, wide, "neutral")
            yield pair(wide, statement, "contradiction")
            yield pair(statement, wide, "contradiction")


def _balanced(groups: Iterable[Iterable[Example]], number: int) -> list[Example]:
    """At most one example of each group, of the label that is rarest so far; `number` examples at most."""
    rng = random.Random(SEED)
    by_label: dict[float, list[Example]] = {label: [] for label in range(len(NLI_LABELS))}
    for group in groups:
        options = list(group)
        if options and sum(map(len, by_label.values())) < number:
            rarest = min(options, key=lambda each: (len(by_label[each.label]), rng.random()))
            by_label[rarest.label].append(rarest)
    return [example for group in by_label.values() for example in group]


def from_premises(premises: Sequence[Example], number: int) -> list[Example]:
    """Negated and quantified premises, one pair each."""
    texts = sorted({premise.texts[0].strip() for premise in premises})
    random.Random(SEED).shuffle(texts)
    return _balanced(map(_negated, texts), number)


def from_substitutions(pairs: Iterable[contrast.Pair], number: int) -> list[Example]:
    """Denials of `contrast`'s sentences, one pair each."""
    return _balanced(map(_substituted, pairs), number)


def _train(data: Path) -> list[Example]:
    return [
        *from_templates(FILE, "train", TEMPLATE_PAIRS),
        *from_premises(SNLI_TRAIN.read(data), PREMISE_PAIRS),
        *from_substitutions(contrast.read_pairs(data, dev=False), SUBSTITUTION_PAIRS),
    ]


TRAIN = Source(
    "negation",
    contrast.TRAIN.licence,
    "30,000 pairs of templates, 6,000 of SNLI's premises, at most 12,000 of the sentences of `contrast`",
    _train,
)
DEV = Source(
    "negation",
    "Apache-2.0",
    "300 pairs of templates",
    lambda _: from_templates(FILE, "dev", DEV_PAIRS),
)
TASKS = (Task("negation", "nli", NLI_LABELS, (TRAIN,), DEV, SNLI_TEST),)
