"""contrast: pairs of sentences that differ in one content word, from premises of three sets and words of WordNet.

The sentences are premises of SNLI, MultiNLI and New Protocols; the words come from WordNet and `contrast.toml`.
Words are split by a hash: no word replaced in a dev pair is replaced in a train pair.
"""

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import typer

from heedful.cli.options import DATA, Data
from heedful.training.data_folder import find, read_each, records, text_of
from tools import json_lines
from tools.substitution_places import Sentence, candidates, sentences, substituted
from tools.substitutions import Substitution, Table, table
from tools.tasks import mnli, nli
from tools.tasks.contrast import DEV_PAIRS, FILE, TRAIN_PAIRS, Pair
from tools.wordnet import WordNet, wordnet

SEED = 1
SHARES = {"synonym": 0.22, "hypernym": 0.23, "antonym": 0.2, "exclusive": 0.35}
"""Share of the pairs of each kind. Half are reversed, which makes the label of a hypernym neutral."""
_LABELS = {"synonym": "entailment", "hypernym": "entailment"}


def command(data: Data = DATA) -> None:
    """Write contrast/train.jsonl and contrast/dev.jsonl into the data folder. They take two minutes."""
    texts, net = _premises(data, dev=False), wordnet()
    counts = Counter(word for sentence in sentences(texts) for word in sentence.lower)
    for split, number in (("train", TRAIN_PAIRS), ("dev", DEV_PAIRS)):
        dev = split == "dev"
        words = table(net, counts, dev=dev)
        premises = _premises(data, dev=True) if dev else texts
        split_pairs = pairs(premises, words, net, dev=dev, number=number)
        file = write(split_pairs, data / FILE.format(split))
        typer.echo(f"{file}: {len(split_pairs):,} pairs")


def write(pairs: Iterable[Pair], file: Path) -> Path:
    """Write JSON lines for `tools.tasks.contrast`."""
    rows = (
        {
            "premise": pair.texts[0],
            "hypothesis": pair.texts[1],
            "label": pair.label,
            "kind": pair.kind,
        }
        for pair in pairs
    )
    json_lines.write(rows, file)
    return file


def pairs(
    texts: Iterable[str], words: Table, net: WordNet, *, dev: bool, number: int
) -> list[Pair]:
    """Up to `number` pairs, at most one a premise and kind, no substitution more often than one in 150 of them."""
    rng = random.Random(SEED)
    by_kind: dict[str, list[Pair]] = {kind: [] for kind in SHARES}
    used: Counter[tuple[str, str]] = Counter()
    shuffled = list(sentences(texts))
    rng.shuffle(shuffled)
    for sentence in shuffled:
        options = list(candidates(sentence, words, net, dev=dev))
        rng.shuffle(options)
        for kind, share in SHARES.items():
            for place, option in options:
                lemmas = min(option.lemmas), max(option.lemmas)
                full = len(by_kind[kind]) >= share * number or used[lemmas] * 150 > number
                if option.kind == kind and not full:
                    used[lemmas] += 1
                    by_kind[kind].append(_pair(sentence, place, option, rng.random() < 0.5))
                    break
    mixed = [pair for group in by_kind.values() for pair in group]
    rng.shuffle(mixed)
    return mixed


def _pair(sentence: Sentence, place: int, substitution: Substitution, reverse: bool) -> Pair:
    texts = sentence.text, substituted(sentence, place, substitution.new)
    label = _LABELS.get(substitution.kind, "contradiction")
    if reverse and substitution.kind == "hypernym":
        label = "neutral"
    return Pair(texts[::-1] if reverse else texts, label, substitution.kind)


def _premises(data: Path, *, dev: bool) -> list[str]:
    sources = (nli.SNLI_DEV, mnli.DEV) if dev else (nli.SNLI_TRAIN, nli.MNLI_TRAIN)
    name = f"nli_newprotocols/{'val' if dev else 'train'}.jsonl"
    premises = [pair.texts[0] for source in sources for pair in source.read(data)]
    path = find(data, (name,), dataset="nli_newprotocols")
    return [*premises, *read_each(path, records(path), _premise)]


def _premise(row: dict[str, object]) -> str:
    return text_of(row, "premise")
