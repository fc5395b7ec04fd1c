"""Pairs that differ in one word, and pairs about negation."""

import os
import tomllib
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from heedful.text.kinds import NLI_LABELS
from heedful.training import tasks
from heedful.training.errors import DataMissing
from heedful.training.substitution_places import sentences, substituted
from heedful.training.substitutions import Kind, Substitution, table
from heedful.training.tasks.contrast import Pair, pairs
from heedful.training.tasks.negation import FILE, from_premises, from_substitutions
from heedful.training.tasks.templates import from_templates
from heedful.training.wordnet import WordNet, wordnet

TEXTS = (
    "A dog is running on the beach.",
    "Two elephants stand in front of a big house.",
    "An old man with a red hat is playing the guitar while three children dance.",
    "A woman in a blue shirt walks quickly to Paris in March.",
    "The American army bought 12 horses in 1874.",
    "An ambulance is parked outside the hospital.",
    "Nobody is eating an apple.",
    "A hot dog lies on the White House lawn.",
)
ENTAILMENT, NEUTRAL, CONTRADICTION = range(3)


@pytest.fixture(scope="module")
def net() -> WordNet:
    try:
        return wordnet()
    except DataMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def made(net: WordNet) -> dict[bool, list[Pair]]:
    words = Counter({word: 5 for text in TEXTS for word in text.lower().strip(".").split()})
    words.update(dict.fromkeys(("animal", "hound", "auto", "infirmary", "cold"), 5))
    sides = {dev: table(net, words, dev=dev) for dev in (False, True)}
    return {dev: pairs(TEXTS, words, net, dev=dev, number=900) for dev, words in sides.items()}


def test_wordnet_is_read(net: WordNet) -> None:
    dog = net.senses("dog", "n")[0]
    assert "domestic_dog" in net.synset("n", dog).words
    assert net.senses("animal", "n")[0] in dict(net.above(dog))
    assert list(net.antonyms("hot")) == ["cold"]
    assert net.share("dog", "n", sense=1) > 0.8 > net.share("run", "n")
    assert "hot_dog" in net
    assert "qwzx" not in net


@pytest.mark.parametrize(
    ("noun", "plural"), [("dog", "dogs"), ("city", "cities"), ("man", "men"), ("bus", "buses")]
)
def test_plurals_are_made_and_read(net: WordNet, noun: str, plural: str) -> None:
    assert net.plural(noun) == plural
    assert net.singular(plural) == noun
    assert net.singular(noun) is None


def test_without_wordnet_the_command_to_install_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match=r"apt-get install wordnet-base.*WNSEARCHDIR"):
        WordNet(tmp_path)


@pytest.mark.parametrize(
    ("word", "new", "expected"),
    [
        ("dog", "animal", "An animal is running on the beach."),
        ("beach", "desert", "A dog is running on the desert."),
        ("A", "one", "One dog is running on the beach."),
    ],
)
def test_capitals_and_articles_agree(word: str, new: str, expected: str) -> None:
    [one] = sentences(TEXTS[:1])
    place = [found[0] for found in one.words].index(word)
    assert substituted(one, place, new) == expected


def test_one_word_is_replaced_and_its_kind_is_the_label(made: dict[bool, list[Pair]]) -> None:
    together = made[False] + made[True]
    kinds = Counter((pair.substitution.kind, pair.label) for pair in together)
    assert set(kinds) <= {
        ("synonym", "entailment"),
        ("hypernym", "entailment"),
        ("hypernym", "neutral"),
        ("antonym", "contradiction"),
        ("exclusive", "contradiction"),
    }
    assert len(together) > 8
    for pair in together:
        first, second = (text.split() for text in pair.texts)
        assert first != second
        # The last two are negated, or hold a term of two words.
        assert set(pair.texts) & set(TEXTS[:6])
        assert sum(a != b for a, b in zip(first, second, strict=False)) <= 2 or len(first) != len(
            second
        )


def test_no_word_replaced_in_dev_is_replaced_in_train(net: WordNet) -> None:
    counts = Counter(dict.fromkeys(("dog", "kitten", "sofa", "doctor", "big", "guitar", "rose"), 5))
    substituted_in = {
        dev: {
            lemma
            for options in table(net, counts, dev=dev).values()
            for one in options
            for lemma in (one.lemmas[:1] if one.kind == "hypernym" else one.lemmas)
        }
        for dev in (False, True)
    }
    assert len(substituted_in[True]) > 100
    assert substituted_in[True].isdisjoint(substituted_in[False])


def test_negation_templates_of_dev_and_train_share_no_words_of_content() -> None:
    dev, train = from_templates(FILE, "dev", 300), from_templates(FILE, "train", 3_000)
    assert len({one.texts for one in dev}) == 300
    assert all(95 <= count <= 105 for count in Counter(one.label for one in dev).values())
    assert not {one.texts for one in dev} & {one.texts for one in train}
    assert from_templates(FILE, "dev", 300) == dev
    assert all("{" not in text and "_" not in text for one in (*dev, *train) for text in one.texts)
    own = tomllib.loads(files("heedful.training").joinpath("negation.toml").read_text("utf-8"))
    templates = [set(own[split]["templates"].strip().splitlines()) for split in ("train", "dev")]
    assert templates[0].isdisjoint(templates[1])
    for word in ("dog", "pilots", "skating", "violin"):
        assert not any(word in text.split() for one in train for text in one.texts)
    assert ("No dogs are in the forest.", "There are dogs in the forest.") in {
        one.texts for one in from_templates(FILE, "dev", 6_000) if one.label == CONTRADICTION
    }


def test_premises_are_negated_and_quantified() -> None:
    premises = [tasks.Example((text,), 0) for text in ("A dog is running.", "Two men sit.")]
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


def _denied(first: str, second: str, label: str, kind: Kind) -> set[tuple[tuple[str, ...], str]]:
    pair = Pair((first, second), label, Substitution("", kind, "noun", ("", "")))
    found = [from_substitutions([pair] * number, 9) for number in range(1, 5)]
    return {(one.texts, NLI_LABELS[int(one.label)]) for some in found for one in some}


def test_a_denied_sentence_says_nothing_of_another_that_it_excludes() -> None:
    found = _denied("A dog is running.", "A cat is running.", "contradiction", "exclusive")
    assert found
    assert found <= {
        (("A dog is not running.", "A cat is running."), "neutral"),
        (("A cat is not running.", "A dog is running."), "neutral"),
        (("No dog is running.", "A cat is running."), "neutral"),
        (("No cat is running.", "A dog is running."), "neutral"),
    }
    counted = _denied("Two men are running.", "Five men are running.", "contradiction", "exclusive")
    assert counted <= {
        (("Two men are not running.", "Five men are running."), "neutral"),
        (("Five men are not running.", "Two men are running."), "neutral"),
    }  # and not "No men are running.", which denies both


@pytest.mark.parametrize("reverse", [False, True])
def test_a_denial_turns_a_hypernym_round(reverse: bool) -> None:
    texts = "The dog is running.", "The animal is running."
    ordered = texts[::-1] if reverse else texts
    found = _denied(*ordered, "neutral" if reverse else "entailment", "hypernym")
    known = {
        (("The animal is not running.", "The dog is not running."), "entailment"),
        (("The dog is not running.", "The animal is not running."), "neutral"),
        (("The animal is not running.", "The dog is running."), "contradiction"),
        (("The dog is running.", "The animal is not running."), "contradiction"),
    }
    assert {label for _, label in found} == set(NLI_LABELS)
    assert found <= known
