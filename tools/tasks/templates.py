"""Examples that are right by construction: sentences with slots, and the words to put there, from a TOML file.

A template is "premise > hypothesis > label", where e, n, c are the labels, or "text > label", where -, 0, + are.
A name in braces stands for a word of the list of that name in the same section; a digit marks a second word of the
list, and a capital letter capitalises the word.
"""

import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from heedful.text.kinds import NLI_LABELS, NLILabel
from heedful.training.tasks.base import Example

SEED = 1
HERE = Path(__file__).parent
ENTAILMENT = {sign: NLI_LABELS.index(name) for sign, name in zip("enc", NLI_LABELS, strict=True)}
SENTIMENT = {"-": 0, "0": 1, "+": 2}
"""Signs of labels, and the labels' numbers in a task."""
_SLOT = re.compile(r"\{(\w+?)(2?)\}")
_PARALLEL = {
    "plural": "singular",
    "things": "thing",
    "verb": "participle",
    "passive": "past",
    "digits": "number",
    "negated": "auxiliary",
}
"""Lists whose n-th word is a form of the n-th word of another list; one choice serves both."""


def pair(premise: str, hypothesis: str, label: NLILabel) -> Example:
    """A pair whose label no teacher may correct."""
    return Example((premise, hypothesis), NLI_LABELS.index(label), trusted=True)


def from_templates(
    file: str, section: str, number: int, signs: Mapping[str, int] = ENTAILMENT
) -> list[Example]:
    """`number` distinct examples of a section of the file, or as many as it has.

    Labels follow each other in turn, and so do each label's templates.
    """
    content = tomllib.loads((HERE / file).read_text("utf-8"))[section]
    words = {name: text.split() for name, text in content.items() if name != "templates"}
    by_label: dict[str, list[str]] = {}
    for line in content["templates"].strip().splitlines():
        by_label.setdefault(line[-1], []).append(line[:-4])
    rng = random.Random(SEED)
    distinct: dict[tuple[str, ...], Example] = {}
    for turn in range(20 * number):
        label = sorted(by_label, key=list(signs).index)[turn % len(by_label)]
        templates = by_label[label]
        filled = _filled(templates[turn // len(by_label) % len(templates)], words, rng)
        texts = tuple(filled.split(" > "))
        distinct.setdefault(texts, Example(texts, signs[label], trusted=True))
        if len(distinct) == number:
            break
    return list(distinct.values())


def _filled(template: str, words: Mapping[str, Sequence[str]], rng: random.Random) -> str:
    chosen: dict[tuple[str, str], int] = {}

    def word(slot: re.Match[str]) -> str:
        name, second = slot.groups()
        choices = words[name.lower()]
        key = _PARALLEL.get(name.lower(), name.lower())
        if (key, second) not in chosen:
            free = set(range(len(choices))) - {chosen.get((key, "")), chosen.get((key, "2"))}
            chosen[key, second] = rng.choice(sorted(free))
        text = choices[chosen[key, second]].replace("_", " ")
        return text.capitalize() if name[0].isupper() else text

    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", _SLOT.sub(word, template))
