"""Sentences and pairs that are right by construction: from templates, from labelled pairs, from other spellings."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from heedful.text.kinds import NLI_LABELS
from heedful.training.metrics import Numbers
from heedful.training.tasks.base import Example
from tools.suites import figures
from tools.tasks import everyday_sentiment, negation, plain_pairs
from tools.tasks.contrast import Pair
from tools.tasks.spellings import SPELLINGS
from tools.tasks.templates import ENTAILMENT, HERE, SENTIMENT, from_templates

NLI = dict(zip(NLI_LABELS, range(3), strict=True))
DOCUMENTS = [[f"Sentence {i} of document {j}." for i in range(9)] for j in range(3)]
FILES = {
    negation.FILE: ("dev", ENTAILMENT),
    plain_pairs.FILE: ("roles", ENTAILMENT),
    everyday_sentiment.FILE: ("everyday", SENTIMENT),
}


@pytest.mark.parametrize("file", FILES)
def test_sentences_of_dev_share_no_template_and_no_text_with_those_of_train(file: str) -> None:
    section, signs = FILES[file]
    dev, train = (
        from_templates(file, part, number, signs)
        for part, number in ((section, 300), ("train", 3_000))
    )
    assert (len({one.texts for one in dev}), len(train)) == (300, 3_000)
    assert {one.label for one in train} == set(signs.values())
    assert not {one.texts for one in dev} & {one.texts for one in train}
    assert not [one for one in (*dev, *train) if re.search(r"[{}_]", " ".join(one.texts))]
    assert from_templates(file, section, 300, signs) == dev
    if file == plain_pairs.FILE:  # whose templates are those of train, with other words
        return
    content = tomllib.loads((HERE / file).read_text("utf-8"))
    lines = [set(content[part]["templates"].strip().splitlines()) for part in ("train", section)]
    assert not lines[0] & lines[1]


def test_roles_and_forms_share_no_name_verb_or_noun_with_train() -> None:
    """Exchanged roles hold the same words in another order."""
    content = tomllib.loads((HERE / plain_pairs.FILE).read_text("utf-8"))
    words = {
        section: {
            word
            for key, text in content[section].items()
            if key not in ("templates", "number", "digits")
            for word in text.split()
        }
        for section in ("train", "roles", "forms")
    }
    assert not words["train"] & (words["roles"] | words["forms"])
    roles = from_templates(plain_pairs.FILE, "roles", 300)
    assert {one.label for one in roles} == {NLI["neutral"]}
    for one in roles:
        plain = [re.sub("was |by ", "", text.lower()) for text in one.texts]
        first, second = (sorted(re.findall(r"\w+", text)) for text in plain)
        assert first == second
        assert one.texts[0] != one.texts[1]
    forms = from_templates(plain_pairs.FILE, "forms", 300)
    assert {one.label for one in forms} == {NLI["entailment"]}


def said(pairs: Sequence[Example]) -> set[tuple[str, str, str]]:
    """Both texts, and the first letter of the label."""
    return {(*one.texts, NLI_LABELS[int(one.label)][0]) for one in pairs}  # type: ignore[misc]


def test_denials_of_two_sentences_that_differ_in_one_word() -> None:
    """Of words that exclude each other nothing follows; of a kind and what it is a kind of, all three."""
    dog, animal = "The dog is running.", "The animal is running."
    no_dog, no_animal = "The dog is not running.", "The animal is not running."
    two, five = "Two men are running.", "Five men are running."
    hypernym = {(no_animal, no_dog, "e"), (no_dog, no_animal, "n")}
    hypernym |= {(no_animal, dog, "c"), (dog, no_animal, "c")}
    # And not "No men are running.", which denies both.
    apart = {("Two men are not running.", five, "n"), ("Five men are not running.", two, "n")}
    for pair, known in (
        (Pair((two, five), "contradiction", "exclusive"), apart),
        (Pair((dog, animal), "entailment", "hypernym"), hypernym),
        (Pair((animal, dog), "neutral", "hypernym"), hypernym),
    ):
        parts = [negation.from_substitutions([pair] * number, 9) for number in range(1, 5)]
        found = said([one for part in parts for one in part])
        assert found <= known
        assert {label for *_, label in found} == {label for *_, label in known}


@pytest.mark.parametrize(
    ("spelling", "text", "other"),
    [
        ("stop", "Two cats sleep.", "Two cats sleep"),
        ("stop", "Two cats sleep", "Two cats sleep."),
        ("stop", "Do they sleep?", "Do they sleep?"),
        ("lower case", "The NASA team won.", "the nasa team won."),
        ("contracted", "It is late and they did not call.", "It's late and they didn't call."),
        ("contracted", "I can't see; she isn't here.", "I cannot see; she is not here."),
        ("contracted", "This island is nothing.", "This island is nothing."),
        ("typographic", 'He said "it\'s me" -- twice.', "He said “it’s me” – twice."),
    ],
)
def test_a_spelling_changes_what_its_name_says(spelling: str, text: str, other: str) -> None:
    assert SPELLINGS[spelling](text) == other


def test_other_spellings_and_longer_premises_keep_the_label() -> None:
    pairs = [Example((f"The man is not at home {i}.", "He's away."), i % 3) for i in range(60)]
    result = plain_pairs.spelled(pairs)
    assert len(result) > 40
    for one in result:
        (number,) = re.findall(r"\d+", one.texts[0])
        assert (one.label, one.trusted) == (int(number) % 3, True)
        assert one.texts not in {pair.texts for pair in pairs}
    for one, pair in zip(plain_pairs.in_passages(pairs[:9], DOCUMENTS), pairs, strict=False):
        assert pair.texts[0] in one.texts[0]
        assert (one.texts[1], one.label) == (pair.texts[1], pair.label)
    result = plain_pairs.passages(DOCUMENTS, 60)
    assert {one.label for one in result} == {NLI["entailment"], NLI["neutral"]}
    for one in result:
        assert (one.texts[1] in one.texts[0]) == (one.label == NLI["entailment"])


def test_an_answer_that_follows_the_stop_does_not_stay() -> None:
    def logits(examples: Sequence[Example]) -> Numbers:
        return np.array([[one.texts[1].endswith("."), 0.5, 0] for one in examples])

    pairs = [Example(("It is a dog.", "A Dog barks."), 0), Example(("No stop", "Here either"), 0)]
    sets = {"forms": lambda _: pairs, "negation": lambda _: pairs}
    found = figures.spelled(sets, Path(), logits)
    assert {one.dataset: (one.value, one.rows) for one in found} == {
        "stop": (0.0, 2),
        "lower case": (1.0, 2),
        "contracted": (1.0, 1),
    }
