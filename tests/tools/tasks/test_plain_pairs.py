"""Pairs that are right by construction, and other spellings of labelled ones."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from heedful.training.metrics import Numbers
from heedful.training.tasks.base import Example
from tools.suites import figures as suite
from tools.tasks.plain_pairs import FILE, in_passages, passages, spelled
from tools.tasks.spellings import SPELLINGS
from tools.tasks.templates import HERE, from_templates

ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2
DOCUMENTS = [[f"Sentence {i} of document {j}." for i in range(9)] for j in range(3)]


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


def test_spelled_pairs_keep_their_label_and_their_letters() -> None:
    pairs = [Example((f"The man is not at home {i}.", "He's away."), i % 3) for i in range(60)]
    result = spelled(pairs)
    assert len(result) > 40
    by_number = {re.search(r"\d+", one.texts[0])[0]: one for one in result}  # type: ignore[index]
    assert all(one.label == int(number) % 3 and one.trusted for number, one in by_number.items())
    assert all(one.texts not in {pair.texts for pair in pairs} for one in result)


def test_a_longer_premise_holds_the_pairs_premise_whole() -> None:
    for one in in_passages(
        [Example(("A dog barks.", "A cat barks."), CONTRADICTION)] * 9, DOCUMENTS
    ):
        assert re.fullmatch(
            r"(Sentence \d of document (\d)\. ?)*A dog barks\.( Sentence .*)?", one.texts[0]
        )
        assert (len(one.texts[0]) > len("A dog barks."), one.texts[1], one.label) == (
            True,
            "A cat barks.",
            CONTRADICTION,
        )


def test_a_passage_entails_its_sentences_and_not_the_next() -> None:
    result = passages(DOCUMENTS, 60)
    assert {one.label for one in result} == {ENTAILMENT, NEUTRAL}
    for one in result:
        assert (one.texts[1] in one.texts[0]) == (one.label == ENTAILMENT)


def test_dev_shares_no_name_verb_or_noun_with_train() -> None:
    """By the words of the filled sentences, which no list of the file decides alone."""
    content = tomllib.loads((HERE / FILE).read_text("utf-8"))
    train = {
        word
        for key, text in content["train"].items()
        if key != "templates"
        for word in text.split()
    }
    for section in ("roles", "forms"):
        shared = {
            word
            for key, text in content[section].items()
            if key not in ("templates", "number", "digits")
            for word in text.split()
        } & train
        assert not shared


def test_exchanged_roles_are_never_entailed_and_other_voices_always_are() -> None:
    roles = from_templates(FILE, "roles", 300)
    assert {one.label for one in roles} == {NEUTRAL}
    for one in roles:  # the same words up to capitals, in another order
        words = [
            sorted(re.findall(r"\w+", text.lower().replace("was ", "").replace("by ", "")))
            for text in one.texts
        ]
        assert words[0] == words[1]
        assert one.texts[0] != one.texts[1]
    assert {one.label for one in from_templates(FILE, "forms", 300)} == {ENTAILMENT}


def test_every_template_of_train_has_words_for_its_slots() -> None:
    pairs = from_templates(FILE, "train", 3_000)
    assert len(pairs) == 3_000
    assert not [one for one in pairs if re.search(r"[{}_]", " ".join(one.texts))]
    assert {one.label for one in pairs} == {ENTAILMENT, NEUTRAL, CONTRADICTION}


def test_an_answer_that_follows_the_stop_does_not_stay() -> None:
    def logits(examples: Sequence[Example]) -> Numbers:
        return np.array([[one.texts[1].endswith("."), 0.5, 0] for one in examples])

    pairs = [Example(("It is a dog.", "A Dog barks."), 0), Example(("No stop", "Here either"), 0)]
    figures = suite.spelled({"forms": lambda _: pairs, "negation": lambda _: pairs}, Path(), logits)
    assert {one.dataset: (one.value, one.rows) for one in figures} == {
        "stop": (0.0, 2),
        "lower case": (1.0, 2),
        "contracted": (1.0, 1),
    }
