"""Pairs about negation: of templates, of premises, and of sentences that differ in one word."""

import tomllib
from collections import Counter

import pytest

from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks.base import Example
from tools.tasks.contrast import Pair
from tools.tasks.negation import FILE, from_premises, from_substitutions
from tools.tasks.templates import HERE, from_templates

CONTRADICTION = NLI_LABELS.index("contradiction")
Labelled = tuple[tuple[str, ...], str]


def test_negation_templates_of_dev_and_train_share_no_words_of_content() -> None:
    dev, train = from_templates(FILE, "dev", 300), from_templates(FILE, "train", 3_000)
    assert len({one.texts for one in dev}) == 300
    assert all(95 <= count <= 105 for count in Counter(one.label for one in dev).values())
    assert not {one.texts for one in dev} & {one.texts for one in train}
    assert from_templates(FILE, "dev", 300) == dev
    assert all("{" not in text and "_" not in text for one in (*dev, *train) for text in one.texts)
    own = tomllib.loads((HERE / FILE).read_text("utf-8"))
    templates = [set(own[split]["templates"].strip().splitlines()) for split in ("train", "dev")]
    assert templates[0].isdisjoint(templates[1])
    for word in ("dog", "pilots", "skating", "violin"):
        assert not any(word in text.split() for one in train for text in one.texts)
    assert ("No dogs are in the forest.", "There are dogs in the forest.") in {
        one.texts for one in from_templates(FILE, "dev", 6_000) if one.label == CONTRADICTION
    }


def test_premises_are_negated_and_quantified() -> None:
    premises = [Example((text,), 0) for text in ("A dog is running.", "Two men sit.")]
    found = {
        (one.texts, NLI_LABELS[int(one.label)])
        for number in range(1, 3)
        for one in from_premises(premises, number)
    }
    known = {
        (("A dog is running.", "A dog is not running."), "contradiction"),
        (("A dog is not running.", "A dog is running."), "contradiction"),
        (("A dog is running.", "No dog is running."), "contradiction"),
        (("No dog is running.", "A dog is running."), "contradiction"),
        (("A dog is running.", "Nobody is running."), "contradiction"),
        (("A dog is running.", "There is a dog running."), "entailment"),
        (("Two men sit.", "Some men sit."), "entailment"),
        (("Some men sit.", "Two men sit."), "neutral"),
        (("Two men sit.", "All men sit."), "neutral"),
    }
    assert found
    assert found <= known


DOG, CAT = "A dog is running.", "A cat is running."
NO_DOG, NO_CAT = "A dog is not running.", "A cat is not running."
TWO, FIVE = "Two men are running.", "Five men are running."
THE_DOG, THE_ANIMAL = "The dog is running.", "The animal is running."
NOT_THE_DOG, NOT_THE_ANIMAL = "The dog is not running.", "The animal is not running."
HYPERNYM = {
    ((NOT_THE_ANIMAL, NOT_THE_DOG), "entailment"),
    ((NOT_THE_DOG, NOT_THE_ANIMAL), "neutral"),
    ((NOT_THE_ANIMAL, THE_DOG), "contradiction"),
    ((THE_DOG, NOT_THE_ANIMAL), "contradiction"),
}


@pytest.mark.parametrize(
    ("pair", "known", "labels"),
    [
        (
            Pair((DOG, CAT), "contradiction", "exclusive"),
            {
                *(((NO_DOG, CAT), "neutral"), ((NO_CAT, DOG), "neutral")),
                *(
                    (("No dog is running.", CAT), "neutral"),
                    (("No cat is running.", DOG), "neutral"),
                ),
            },
            {"neutral"},
        ),
        (  # and not "No men are running.", which denies both
            Pair((TWO, FIVE), "contradiction", "exclusive"),
            {
                (("Two men are not running.", FIVE), "neutral"),
                (("Five men are not running.", TWO), "neutral"),
            },
            {"neutral"},
        ),
        (Pair((THE_DOG, THE_ANIMAL), "entailment", "hypernym"), HYPERNYM, set(NLI_LABELS)),
        (Pair((THE_ANIMAL, THE_DOG), "neutral", "hypernym"), HYPERNYM, set(NLI_LABELS)),
    ],
)
def test_denials_of_two_sentences_that_differ_in_one_word(
    pair: Pair, known: set[Labelled], labels: set[str]
) -> None:
    found = [from_substitutions([pair] * number, 9) for number in range(1, 5)]
    said = {(one.texts, NLI_LABELS[int(one.label)]) for some in found for one in some}
    assert said <= known
    assert {label for _, label in said} == labels
