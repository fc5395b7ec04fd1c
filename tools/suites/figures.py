"""The suite: all scores of one model over its kind's tasks, and how well its probabilities are calibrated."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scipy.special import softmax

from heedful.cli import scores
from heedful.text.kinds import NLI_LABELS
from heedful.training.data import labels
from heedful.training.metrics import Numbers
from heedful.training.similarity import Embed, Figure, Split, sample, similarities
from heedful.training.tasks.base import Example, Reader
from tools.suites.transfer import accuracies
from tools.tasks import (
    contrast,
    everyday_sentiment,
    identity,
    imdb,
    mnli,
    negation,
    nli,
    nli_sets,
    plain_pairs,
    senteval,
    sick_sets,
    sst,
    yelp,
)
from tools.tasks.spellings import SPELLINGS

Logits = Callable[[Sequence[Example]], Numbers]
"""Examples (N,) -> the served logits (N, C), by the labels that the examples count."""
WORDS = "mean of its word vectors: "
"""Prefix of the sets in the figures of the mean of a bundle's word vectors."""


def _together(*readers: Reader) -> Reader:
    return lambda data: [example for read in readers for example in read(data)]


ROLES = "roles"
"""A set of pairs that are not entailed; whether one is neutral or a contradiction is open."""
NLI: Mapping[Split, Mapping[str, Reader]] = {
    "dev": {
        "SNLI": nli.SNLI_DEV.read,
        "MultiNLI matched": mnli.DEV.read,
        "contrast": contrast.DEV.read,
        "negation": negation.DEV.read,
        "identity": identity.DEV.read,
        "SICK train+dev": _together(
            sick_sets.ENTAILMENT["train"].read, sick_sets.ENTAILMENT["dev"].read
        ),
        "New Protocols": nli_sets.NEW_PROTOCOLS_DEV.read,
        ROLES: plain_pairs.ROLES.read,
        "forms": plain_pairs.FORMS.read,
        "monotonicity": plain_pairs.MONOTONICITY.read,
        "paragraphs": plain_pairs.PARAGRAPHS.read,
    },
    "test": {
        "SNLI": nli.SNLI_TEST.read,
        "MultiNLI mismatched": mnli.TEST.read,
        "SICK": sick_sets.ENTAILMENT["test"].read,
    },
}


RESPELLED, SPELLED = ("SNLI", "MultiNLI matched", "forms"), 500
"""Sets whose pairs are read in every spelling, and the number of pairs of each."""


def _polar(read: Reader) -> Reader:
    """Yelp's reviews of one or two stars as negative, of four or five as positive."""

    def mapped(data: Path) -> list[Example]:
        return [
            replace(example, label=int(example.label > 2))
            for example in read(data)
            if example.label != 2
        ]

    return mapped


(_YELP,) = yelp.TASKS
POLARITY: Mapping[Split, Mapping[str, Reader]] = {
    "dev": {
        "SST": sst.sentences("dev", sst.two),
        "IMDB": imdb.DEV,
        "CR": senteval.CR.read,
        "Yelp without three stars": _polar(_YELP.dev.read),
    },
    "test": {"Yelp without three stars": _polar(_YELP.test.read)},
}
"""Sets of negative (0) and positive texts (1). No shipped model has learned from CR or Yelp."""
MORE: Mapping[tuple[str, Split], Mapping[str, Reader]] = {
    ("sentiment", "dev"): {"everyday": everyday_sentiment.DEV.read}
}
"""More sets with a task's classes, by task and split."""


def calibration_error(probabilities: Numbers, labels: Numbers) -> float:
    """The expected calibration error of probabilities (N, C) given the right classes (N,), over 15 bins."""
    right = probabilities.argmax(axis=1) == labels
    return scores.calibration_error(probabilities.max(axis=1), right, 15)


def labelled(
    sets: Mapping[str, Reader],
    data: Path,
    logits: Logits,
    *,
    temperature: float,
    rows: int | None = None,
) -> Iterator[Figure]:
    """Accuracy on every set, and the calibration error without and with the card's temperature.

    Raises DataMissing.
    """
    for name, read in sets.items():
        examples = sample(read(data), rows)
        served, gold = logits(examples), labels(examples)
        count, answers = len(examples), served.argmax(axis=1)
        yield Figure(name, "accuracy", float((answers == gold).mean()), count)
        if name == ROLES:
            apart = float((answers != NLI_LABELS.index("entailment")).mean())
            yield Figure(name, "not entailment", apart, count)
        raw = calibration_error(softmax(served * temperature, axis=1), gold)
        yield Figure(name, "ECE without temperature", raw, count)
        yield Figure(name, "ECE", calibration_error(softmax(served, axis=1), gold), count)


def spelled(sets: Mapping[str, Reader], data: Path, logits: Logits) -> Iterator[Figure]:
    """The share of pairs of RESPELLED whose answer stays the same in another spelling of both texts (`spellings`).

    Raises DataMissing.
    """
    examples = [
        example
        for name in RESPELLED
        if name in sets
        for example in sample(sets[name](data), SPELLED)
    ]
    if not examples:
        return
    answers = logits(examples).argmax(axis=1)
    for name, spell in SPELLINGS.items():
        others = [replace(each, texts=tuple(map(spell, each.texts))) for each in examples]
        places = [
            i for i, (a, b) in enumerate(zip(examples, others, strict=True)) if a.texts != b.texts
        ]
        if not places:
            continue
        spelled_answers = logits([others[i] for i in places]).argmax(axis=1)
        same = float((spelled_answers == answers[places]).mean())
        yield Figure(name, "same answer", same, len(places))


def polarised(
    sets: Mapping[str, Reader],
    data: Path,
    logits: Logits,
    classes: Sequence[str],
    rows: int | None = None,
) -> Iterator[Figure]:
    """Accuracy of the likelier of negative and positive on every set; a classifier's other classes are left out.

    "very negative" counts as negative, and "very positive" as positive. Nothing where the classes (C,) of the logits
    lack one of the two. Raises DataMissing.
    """
    sides = [[name.split()[-1] == side for name in classes] for side in ("negative", "positive")]
    if not all(map(any, sides)):
        return
    for name, read in sets.items():
        examples = sample(read(data), rows)
        probabilities = softmax(logits(examples), axis=1)
        negative, positive = (probabilities[:, side].sum(axis=1) for side in sides)
        right = (positive > negative) == labels(examples)
        yield Figure(name, "negative or positive", float(right.mean()), len(examples))


def embedded(embed: Embed, data: Path, split: Split, rows: int | None = None) -> Iterator[Figure]:
    """Similarity of pairs, cosines of unrelated sentences, and the frozen transfer tasks.

    `rows` limits the similarity pairs, and leaves out the transfer tasks. Raises DataMissing.
    """
    yield from similarities(embed, data, split, rows)
    if rows is None:
        for name, accuracy in accuracies(embed, data, split).items():
            yield Figure(f"{name}, frozen", "accuracy", accuracy, None)
