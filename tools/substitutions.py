"""Lexical substitutions from WordNet and `contrast.toml`, with their effect on a sentence's meaning."""

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

from tools.wordnet import WordNet

Kind = Literal["synonym", "hypernym", "antonym", "exclusive"]
Place = Literal["noun", "adjective", "verb", "number", "name", "word"]
"""The kind of place in a sentence where the word may be replaced."""
DOMINANT = 0.55
"""The lowest share of a word's uses in its first sense at which the word is taken in this sense."""
FAMILIAR = 5
"""How often a word of WordNet must occur in the sentences to be used."""
ROOTS = ("animal", "musical_instrument", "fruit", "vegetable", "flower")
"""Below these, words of one hypernym exclude each other."""
DEEPEST = 6
DEV_WORDS = 0.25
_EXCLUDED = {"hoops", "bones", "someone", "somebody", "same", "different", "other"}
_VERBS = ("postures", "postures_now", "postures_then")
_ADJECTIVES = ("colours", "materials", "directions", "ordinals")


@dataclass(frozen=True, slots=True)
class Substitution:
    """A word in place of another. `lemmas` are the singular forms of the old and the new word."""

    new: str
    kind: Kind
    place: Place
    lemmas: tuple[str, str]
    person: bool = False  # whether it changes the sex of a person


Table = Mapping[str, list[Substitution]]


def word_lists() -> dict[str, Any]:
    """The word lists of `contrast.toml`."""
    return tomllib.loads(Path(__file__).with_name("contrast.toml").read_text("utf-8"))


def table(net: WordNet, counts: Mapping[str, int], *, dev: bool) -> Table:
    """Substitutions by lower-case form. `counts` is how often each form occurs in the sentences.

    Synonyms and antonyms of a word are in its split, train or dev; hypernyms are in both.
    """
    lists = word_lists()
    hypernyms = lists["hypernyms"]["words"]
    pairs = [*_listed(lists, net), *_wordnet(hypernyms.split(), net, counts)]
    family = _families(each.lemmas for _, each in pairs if each.kind in {"synonym", "antonym"})
    train_only = {family(word) for word in hypernyms.replace("_", " ").split()}

    def is_of_split(substitution: Substitution) -> bool:
        lemmas = substitution.lemmas
        deciding = lemmas[:1] if substitution.kind == "hypernym" else lemmas
        sides = {family(w) not in train_only and held_out(family(w)) for w in deciding}
        return sides == {dev}

    by_form: dict[str, list[Substitution]] = defaultdict(list)
    for old, new in pairs:
        if is_of_split(new) and all(new.new != other.new for other in by_form[old]):
            by_form[old].append(new)
    return by_form


def held_out(word: str) -> bool:
    """Whether the word, or the family that it names, belongs to dev."""
    return crc32(word.encode()) % 1000 < 1000 * DEV_WORDS


def _families(pairs: Iterable[tuple[str, str]]) -> Callable[[str], str]:
    """A function from a word to the first word of all that the pairs connect with it."""
    first: dict[str, str] = {}

    def find(word: str) -> str:
        while word in first:
            word = first[word]
        return word

    for pair in pairs:
        low, high = sorted(map(find, pair))
        if low != high:
            first[high] = low
    return find


def _listed(lists: Mapping[str, Any], net: WordNet) -> Iterator[tuple[str, Substitution]]:
    exclusive = lists["exclusive"]
    for words in exclusive["nouns"].values():
        for pair in permutations(words.split(), 2):
            yield from _numbers(pair, "exclusive", net)
    for words in exclusive["names"].values():
        for old, new in permutations(words.split(), 2):
            yield old.lower(), Substitution(new, "exclusive", "name", (old.lower(), new.lower()))
    for group, words in exclusive["words"].items():
        place: Place = (
            "verb" if group in _VERBS else "adjective" if group in _ADJECTIVES else "number"
        )
        for old, new in permutations(words.split(), 2):
            yield old, Substitution(new, "exclusive", place, (old, new))
    for group, pairs in lists["antonyms"].items():
        for pair in _pairs(pairs):
            if group == "nouns":
                yield from _numbers(pair, "antonym", net)
            else:
                place = "adjective" if group == "adjectives" else "word"
                yield pair[0], Substitution(pair[1], "antonym", place, pair, group == "persons")
    for old, new in _pairs(lists["synonyms"]["words"]):
        if "_" not in old:
            yield old, Substitution(new.replace("_", " "), "synonym", "word", (old, new))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """The pairs of `old new, old new`, in both directions."""
    for pair in text.replace("\n", " ").split(","):
        old, new = pair.split()
        yield from ((old, new), (new, old))


def _numbers(pair: tuple[str, str], kind: Kind, net: WordNet) -> Iterator[tuple[str, Substitution]]:
    """The substitution of a noun for another in the singular and the plural."""
    old, new = pair
    yield old, Substitution(new, kind, "noun", pair)
    yield net.plural(old), Substitution(net.plural(new), kind, "noun", pair)


def _wordnet(
    hypernyms: Iterable[str], net: WordNet, counts: Mapping[str, int]
) -> Iterator[tuple[str, Substitution]]:
    """Synonyms, listed hypernyms and words of the same hypernym, and adjectives' antonyms."""
    listed = {net.senses(word, "n")[0]: word.replace("_", " ") for word in hypernyms}
    nouns = {
        word: net.senses(word, "n")[0]
        for form, count in counts.items()
        if count >= FAMILIAR
        for word in (net.singular(form) or form,)
        if word.isalpha() and word not in _EXCLUDED and net.share(word, "n", sense=1) >= DOMINANT
    }
    roots = {net.senses(word, "n")[0] for word in ROOTS}
    siblings: dict[int, list[str]] = defaultdict(list)
    words_of: dict[int, list[str]] = defaultdict(list)
    for word, sense in nouns.items():
        words_of[sense].append(word)
    for word, sense in sorted(nouns.items()):
        above = dict(net.above(sense))
        for other in words_of[sense]:
            if other != word and not (other + word).endswith("ing"):
                yield from _numbers((word, other), "synonym", net)
        for offset, distance in above.items():
            if offset in listed and distance <= DEEPEST:
                yield from _numbers((word, listed[offset]), "hypernym", net)
        if roots & above.keys() and len(words_of[sense]) == 1:
            siblings[next(iter(above))].append(word)
    for group in siblings.values():
        for pair in permutations(group, 2):
            yield from _numbers(pair, "exclusive", net)
    familiar = {form for form, count in counts.items() if count >= FAMILIAR} - _EXCLUDED
    for form in sorted(familiar):
        for other in net.antonyms(form) if net.share(form, "a", sense=1) >= DOMINANT else ():
            if other in familiar and not form.endswith("ed") and not other.endswith("ed"):
                yield form, Substitution(other, "antonym", "adjective", (form, other))
