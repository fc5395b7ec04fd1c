"""Pairs that differ in one word, made with WordNet and read back."""

import os
from collections import Counter
from pathlib import Path

import pytest

from heedful.training import tasks
from heedful.training.errors import DataMissing
from heedful.training.tasks.base import Example
from tools import contrast
from tools.substitution_places import sentences, substituted
from tools.substitutions import table
from tools.tasks.contrast import FILE, Pair, read_pairs
from tools.wordnet import WordNet, wordnet

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


@pytest.fixture(scope="module")
def net() -> WordNet:
    try:
        return wordnet()
    except DataMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


def test_wordnet_is_read(net: WordNet) -> None:
    dog = net.senses("dog", "n")[0]
    assert "domestic_dog" in net.synset("n", dog).words
    assert net.senses("animal", "n")[0] in dict(net.above(dog))
    assert list(net.antonyms("hot")) == ["cold"]
    assert net.share("dog", "n", sense=1) > 0.8 > net.share("run", "n")
    assert ("hot_dog" in net, "qwzx" in net) == (True, False)
    for noun, plural in (("dog", "dogs"), ("city", "cities"), ("man", "men"), ("bus", "buses")):
        assert (net.plural(noun), net.singular(plural)) == (plural, noun)
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


def test_one_word_is_replaced_and_its_kind_is_the_label(net: WordNet, tmp_path: Path) -> None:
    words = Counter({word: 5 for text in TEXTS for word in text.lower().strip(".").split()})
    words.update(dict.fromkeys(("animal", "hound", "auto", "infirmary", "cold"), 5))
    together: list[Pair] = []
    for split in ("train", "dev"):
        dev = split == "dev"
        made = contrast.pairs(TEXTS, table(net, words, dev=dev), net, dev=dev, number=900)
        contrast.write(made, tmp_path / FILE.format(split))
        assert read_pairs(tmp_path, dev=dev) == made
        together += made
    assert {(one.kind, one.label) for one in together} <= {
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
        changed = sum(a != b for a, b in zip(first, second, strict=False))
        assert changed <= 2 or len(first) != len(second)
    task = tasks.get("contrast")
    read = [*task.train[0].read(tmp_path), *task.dev.read(tmp_path)]
    assert read == [Example(one.texts, task.labels.index(one.label)) for one in together]


def test_pairs_that_were_not_made_are_named_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match=r"contrast/train\.jsonl.*python -m tools contrast"):
        tasks.get("contrast").train[0].read(tmp_path)


def test_the_pairs_to_judge_on_come_with_the_package(tmp_path: Path) -> None:
    pairs = tasks.get("contrast").dev.read(tmp_path)
    assert len(pairs) > 1_500
    assert {one.label for one in pairs} == {0, 1, 2}
    assert all(first != second for first, second in (one.texts for one in pairs))


def test_no_word_replaced_in_dev_is_replaced_in_train(net: WordNet) -> None:
    counts = Counter(dict.fromkeys(("dog", "kitten", "sofa", "doctor", "big", "guitar", "rose"), 5))
    train, dev = (
        {
            lemma
            for options in table(net, counts, dev=dev).values()
            for one in options
            for lemma in (one.lemmas[:1] if one.kind == "hypernym" else one.lemmas)
        }
        for dev in (False, True)
    )
    assert len(dev) > 100
    assert dev.isdisjoint(train)
