"""Pairs about negation and quantifiers (`negation`), from the templates of `negation.toml` and from SNLI's premises.

Train and dev share neither templates nor nouns, verbs and adjectives.
"""

import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from heedful.text.kinds import NLI_LABELS, NLILabel
from heedful.training.tasks.base import Example, Source, Task
from heedful.training.tasks.nli import SNLI_LICENCE, SNLI_TEST, SNLI_TRAIN

SEED = 1
TEMPLATE_PAIRS, PREMISE_PAIRS, DEV_PAIRS = 13_000, 3_500, 300
_LABELS: dict[str, NLILabel] = {"e": "entailment", "n": "neutral", "c": "contradiction"}
_SLOT = re.compile(r"\{(\w+?)(2?)\}")
_PARALLEL = {"plural": "singular", "things": "thing", "verb": "participle"}
"""Lists whose n-th word is a form of the n-th word of another list; one choice serves both."""
_MAIN = re.compile(r"(A|An|The|Two|Three|Four|Five)( .*?)? (is|are) (\w+ing)\b(.*)")
_QUANTIFIED = re.compile(r"(?:Two|Three|Four|Five|Six|Several) (.*)")


def _filled(template: str, words: Mapping[str, Sequence[str]], rng: random.Random) -> str:
    chosen: dict[tuple[str, str], int] = {}

    def word(slot: re.Match[str]) -> str:
        name, second = slot.groups()
        choices = words[name.lower()]
        key = _PARALLEL.get(name, name)
        if (key, second) not in chosen:
            free = set(range(len(choices))) - {chosen.get((key, "")), chosen.get((key, "2"))}
            chosen[key, second] = rng.choice(sorted(free))
        found = choices[chosen[key, second]].replace("_", " ")
        return found.capitalize() if name[0].isupper() else found

    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", _SLOT.sub(word, template))


def from_templates(split: str, number: int) -> list[Example]:
    """Distinct pairs, each label's templates in turn."""
    own = tomllib.loads(files("heedful.training").joinpath("negation.toml").read_text("utf-8"))
    words = {name: text.split() for name, text in own[split].items() if name != "templates"}
    by_label: dict[str, list[str]] = {}
    for line in own[split]["templates"].strip().splitlines():
        by_label.setdefault(line[-1], []).append(line[:-4])
    rng = random.Random(SEED)
    found: dict[tuple[str, ...], Example] = {}
    for turn in range(20 * number):
        label = "enc"[turn % 3]
        templates = by_label[label]
        texts = tuple(_filled(templates[turn // 3 % len(templates)], words, rng).split(" > "))
        found.setdefault(texts, Example(texts, NLI_LABELS.index(_LABELS[label])))
        if len(found) == number:
            break
    return list(found.values())


def _negated(premise: str) -> Iterator[tuple[str, str, NLILabel]]:
    """A premise with its negation or a quantifier, in both directions where the label is the same."""
    main = None if '"' in premise else _MAIN.fullmatch(premise)
    if main and not re.search(r"\b(and|while|as|who|that|which|is|are|no|not|nobody)\b", main[5]):
        determiner, rest, verb, doing, end = (part or "" for part in main.groups())
        if re.search(r"\b(and|who|that|which|while)\b|,", rest):
            return
        negated = f"{determiner}{rest} {verb} not {doing}{end}"
        yield premise, negated, "contradiction"
        yield negated, premise, "contradiction"
        if determiner != "The" and (verb == "is" or determiner not in {"A", "An"}):
            yield premise, f"No{rest} {verb} {doing}{end}", "contradiction"
            yield f"No{rest} {verb} {doing}{end}", premise, "contradiction"
            yield premise, f"Nobody is {doing}{end}", "contradiction"
            yield premise, f"There {verb} {determiner.lower()}{rest} {doing}{end}", "entailment"
    if quantified := _QUANTIFIED.fullmatch(premise):
        yield premise, f"Some {quantified[1]}", "entailment"
        yield f"Some {quantified[1]}", premise, "neutral"
        yield premise, f"All {quantified[1]}", "neutral"


def from_premises(premises: Sequence[Example], number: int) -> list[Example]:
    """A third of each label, where there are as many."""
    rng = random.Random(SEED)
    found: dict[str, list[Example]] = {label: [] for label in NLI_LABELS}
    texts = sorted({one.texts[0].strip() for one in premises})
    rng.shuffle(texts)
    for text in texts:
        options = list(_negated(text))
        if options and sum(map(len, found.values())) < number:
            least = min(options, key=lambda option: (len(found[option[2]]), rng.random()))
            first, second, label = least
            found[label].append(Example((first, second), NLI_LABELS.index(label)))
    return [one for some in found.values() for one in some]


def _train(data: Path) -> list[Example]:
    premises = from_premises(SNLI_TRAIN.read(data), PREMISE_PAIRS)
    return [*from_templates("train", TEMPLATE_PAIRS), *premises]


TRAIN = Source(
    "negation", SNLI_LICENCE, "13,000 pairs of templates, 3,500 of SNLI's premises", _train
)
DEV = Source(
    "negation", "Apache-2.0", "300 pairs of templates", lambda _: from_templates("dev", DEV_PAIRS)
)
TASKS = (Task("negation", "nli", NLI_LABELS, (TRAIN,), DEV, SNLI_TEST),)
