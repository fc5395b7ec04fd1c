"""Pairs whose sentences differ in one content word (`contrast`): a synonym, a hypernym or a word that excludes it.

The sentences are premises of SNLI, MultiNLI and New Protocols; the words come from WordNet and `contrast.toml`.
Words are split by a hash: no word replaced in a dev pair is replaced in a train pair.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from heedful.text.kinds import NLI_LABELS
from heedful.training.data_folder import find, read_each, records, text_of
from heedful.training.substitution_places import Sentence, candidates, sentences, substituted
from heedful.training.substitutions import Substitution, Table, table
from heedful.training.tasks.base import Example, Source, Task
from heedful.training.tasks.mnli import DEV as MNLI_DEV
from heedful.training.tasks.nli import (
    MNLI_LICENCE,
    MNLI_TRAIN,
    SNLI_DEV,
    SNLI_LICENCE,
    SNLI_TEST,
    SNLI_TRAIN,
)
from heedful.training.wordnet import WordNet, wordnet

SEED = 1
TRAIN_PAIRS, DEV_PAIRS = 60_000, 2_000
SHARES = {"synonym": 0.22, "hypernym": 0.23, "antonym": 0.2, "exclusive": 0.35}
"""How many of the pairs are of each kind. Half are reversed, which makes a hypernym's neutral."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its copy with one word replaced."""

    texts: tuple[str, str]
    label: str
    substitution: Substitution

    def example(self) -> Example:
        return Example(self.texts, NLI_LABELS.index(self.label))


_LABELS = {"synonym": "entailment", "hypernym": "entailment"}


def _pair(one: Sentence, place: int, found: Substitution, reverse: bool) -> Pair:
    texts = one.text, substituted(one, place, found.new)
    label = _LABELS.get(found.kind, "contradiction")
    if reverse and found.kind == "hypernym":
        label = "neutral"
    return Pair(texts[::-1] if reverse else texts, label, found)


def pairs(
    texts: Iterable[str], words: Table, net: WordNet, *, dev: bool, number: int
) -> list[Pair]:
    """Up to `number` pairs, at most one a premise and kind, no substitution more often than one in 150 of them."""
    rng = random.Random(SEED)
    found: dict[str, list[Pair]] = {kind: [] for kind in SHARES}
    used: Counter[tuple[str, str]] = Counter()
    shuffled = list(sentences(texts))
    rng.shuffle(shuffled)
    for one in shuffled:
        options = list(candidates(one, words, net, dev=dev))
        rng.shuffle(options)
        for kind, share in SHARES.items():
            for place, option in options:
                lemmas = min(option.lemmas), max(option.lemmas)
                full = len(found[kind]) >= share * number or used[lemmas] * 150 > number
                if option.kind == kind and not full:
                    used[lemmas] += 1
                    found[kind].append(_pair(one, place, option, rng.random() < 0.5))
                    break
    together = [pair for some in found.values() for pair in some]
    rng.shuffle(together)
    return together


def _premises(data: Path, *, dev: bool) -> list[str]:
    sources = (SNLI_DEV, MNLI_DEV) if dev else (SNLI_TRAIN, MNLI_TRAIN)
    name = f"nli_newprotocols/{'val' if dev else 'train'}.jsonl"
    found = [one.texts[0] for source in sources for one in source.read(data)]
    path = find(data, (name,), dataset="nli_newprotocols")
    return [*found, *read_each(path, records(path), lambda row: text_of(row, "premise"))]


def read_pairs(data: Path, *, dev: bool) -> list[Pair]:
    """Raises DataMissing, also where WordNet is not installed."""
    texts = _premises(data, dev=False)
    counts = Counter(word for one in sentences(texts) for word in one.lower)
    words = table(wordnet(), counts, dev=dev)
    if dev:
        return pairs(_premises(data, dev=True), words, wordnet(), dev=True, number=DEV_PAIRS)
    return pairs(texts, words, wordnet(), dev=False, number=TRAIN_PAIRS)


def _source(split: str, number: int) -> Source:
    def read(data: Path) -> list[Example]:
        return [pair.example() for pair in read_pairs(data, dev=split == "dev")]

    licence = f"{SNLI_LICENCE}; {MNLI_LICENCE}; CC BY-SA 3.0; words: WordNet 3.0"
    note = f"{number:,} pairs made of {split} premises of SNLI, MultiNLI and New Protocols"
    return Source("contrast", licence, note, read)


TRAIN, DEV = _source("train", TRAIN_PAIRS), _source("dev", DEV_PAIRS)
TASKS = (Task("contrast", "nli", NLI_LABELS, (TRAIN,), DEV, SNLI_TEST),)
