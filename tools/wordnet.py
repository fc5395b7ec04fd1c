"""WordNet 3.0 (Princeton): nouns and adjectives with their senses, read from the files of Debian's `wordnet-base`."""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from heedful.training.data_folder import lines
from heedful.training.errors import DataMissing

VARIABLE = "WNSEARCHDIR"
"""WordNet's own environment variable for the folder of its files."""
DEFAULT = Path("/usr/share/wordnet")
_POS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
_VOWELS = "aeiou"


@dataclass(frozen=True, slots=True)
class Synset:
    """Words of one meaning, the offsets of its hypernyms, and (number of the word, offset, number of the other word) of
    each antonym."""

    words: tuple[str, ...]
    hypernyms: tuple[int, ...]
    antonyms: tuple[tuple[int, int, int], ...]


def _synset(line: str) -> tuple[int, Synset]:
    """A line of `data.noun` or `data.adj` (wndb(5WN)): numbers of words are hexadecimal."""
    cells = line.partition(" | ")[0].split()
    count = int(cells[3], 16)
    words = tuple(cells[4 + 2 * i].partition("(")[0] for i in range(count))
    pointers = cells[5 + 2 * count :]
    hypernyms, antonyms = [], []
    for start in range(0, 4 * int(cells[4 + 2 * count]), 4):
        symbol, offset, _, places = pointers[start : start + 4]
        if symbol == "@":
            hypernyms.append(int(offset))
        elif symbol == "!":
            antonyms.append((int(places[:2], 16) - 1, int(offset), int(places[2:], 16) - 1))
    return int(cells[0]), Synset(words, tuple(hypernyms), tuple(antonyms))


class WordNet:
    """Senses are in WordNet's order, the most frequent first."""

    def __init__(self, folder: Path) -> None:
        """Raises DataMissing where `folder` lacks a file."""
        if not (folder / "cntlist.rev").is_file():
            raise DataMissing(
                f"{folder} holds no cntlist.rev: install WordNet (sudo apt-get install wordnet-base), "
                f"or name the folder of its files in {VARIABLE}"
            )
        self._senses: dict[tuple[str, str], tuple[int, ...]] = {}
        for name, pos in _POS.items():
            for line in _entries(folder / f"index.{name}"):
                lemma, _, synsets, pointers, *rest = line.split()
                offsets = rest[int(pointers) + 2 :][: int(synsets)]
                self._senses[lemma, pos] = tuple(map(int, offsets))
        self._synsets = {
            pos: dict(map(_synset, _entries(folder / f"data.{name}")))
            for name, pos in (("noun", "n"), ("adj", "a"))
        }
        self._counts: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        for line in lines(folder / "cntlist.rev"):
            key, sense, count = line.split()
            lemma, _, place = key.partition("%")
            self._counts[lemma][_TYPES[place[0]], int(sense)] = int(count)
        self._singulars = dict(_exceptions(folder / "noun.exc"))
        self._plurals = {lemma: form for form, lemma in reversed(self._singulars.items())}

    def __contains__(self, lemma: str) -> bool:
        """Whether any part of speech has the lemma; `_` joins its words."""
        return any((lemma, pos) in self._senses for pos in _POS.values())

    def senses(self, lemma: str, pos: str) -> tuple[int, ...]:
        """Offsets of its synsets; empty for an unknown lemma."""
        return self._senses.get((lemma, pos), ())

    def synset(self, pos: str, offset: int) -> Synset:
        return self._synsets[pos][offset]

    def share(self, lemma: str, pos: str, *, sense: int | None = None) -> float:
        """The share of the lemma's uses in this part of speech (and sense, from 1), by WordNet's counts plus 1/2."""
        if not self.senses(lemma, pos):
            return 0.0
        counts = self._counts.get(lemma, {})
        total = sum(counts.values()) + sum(
            0.5 * len(self.senses(lemma, each)) for each in _POS.values()
        )
        numbers = range(1, len(self.senses(lemma, pos)) + 1) if sense is None else (sense,)
        return sum(counts.get((pos, number), 0) + 0.5 for number in numbers) / total

    def above(self, offset: int) -> Iterator[tuple[int, int]]:
        """(offset, distance) of the noun synset's hypernyms, transitively, the nearest first."""
        reached, level = {offset}, [offset]
        distance = 0
        while level:
            distance += 1
            hypernyms = [above for each in level for above in self.synset("n", each).hypernyms]
            level = [each for each in dict.fromkeys(hypernyms) if each not in reached]
            reached.update(level)
            yield from ((each, distance) for each in level)

    def antonyms(self, lemma: str) -> Iterator[str]:
        """Direct antonyms of the adjective's first sense."""
        for offset in self.senses(lemma, "a")[:1]:
            synset = self.synset("a", offset)
            for number, other, other_number in synset.antonyms:
                if synset.words[number].lower() == lemma:
                    yield self.synset("a", other).words[other_number].lower()

    def singular(self, form: str) -> str | None:
        """The noun whose plural `form` is, else None."""
        if form in self._singulars:
            return self._singulars[form]
        candidates = [form[:-1]] if form.endswith("s") and not form.endswith("ss") else []
        candidates += [form[:-3] + "y"] if form.endswith("ies") else []
        candidates += [form[:-2]] if form.endswith(("ches", "shes", "ses", "xes", "zes")) else []
        nouns = (each for each in reversed(candidates) if self.senses(each, "n"))
        return next((noun for noun in nouns if self.plural(noun) == form), None)

    def plural(self, noun: str) -> str:
        if noun == "person":
            return "people"
        irregular = self._plurals.get(noun)
        if irregular and (noun.endswith(("f", "fe", "o")) or not irregular.endswith("s")):
            return irregular
        if noun.endswith("y") and noun[-2:-1] not in _VOWELS:
            return noun[:-1] + "ies"
        return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _entries(path: Path) -> Iterator[str]:
    """Lines of an index or data file without its licence, whose lines begin with blanks."""
    return (line for line in lines(path) if not line.startswith(" "))


def _exceptions(path: Path) -> Iterator[tuple[str, str]]:
    for line in lines(path):
        form, *lemmas = line.split()
        yield form, lemmas[0]


@cache
def wordnet() -> WordNet:
    """WordNet as WNSEARCHDIR or Debian's folder holds it. Raises DataMissing."""
    return WordNet(Path(os.environ.get(VARIABLE) or DEFAULT))
