"""Plain pairs (`plain`): roles exchanged, active and passive, numbers, opposites; other spellings; longer premises.

They come from the templates of `plain.toml`, from labelled pairs that are spelled otherwise (`spellings`) or whose
premise stands among other sentences, and from passages with the sentence that follows them. Their labels are right by
construction, so that no teacher corrects them.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks.base import Example, Reader, Source, Task
from tools.tasks import broad_text, mnli, nli, nli_sets
from tools.tasks.folds import drawn
from tools.tasks.spellings import SPELLINGS
from tools.tasks.templates import from_templates, pair

FILE = "plain.toml"
SEED = 1
TEMPLATE_PAIRS, SPELLED, IN_PASSAGES, PASSAGES = 40_000, 60_000, 20_000, 12_000
DEV_PAIRS = 300
TRAIN_KINDS = ("government", "news", "techdoc", "textbooks")
DEV_KINDS = ("medical", "speeches")
"""Kinds of `data/text` whose sentences stand around a premise."""


def spelled(examples: Iterable[Example]) -> list[Example]:
    """Each pair with one or both of its texts in another spelling, where one of them has another."""
    rng = random.Random(SEED)
    result = []
    for example in examples:
        spell = rng.choice(list(SPELLINGS.values()))
        sides = rng.choice([(True, True), (True, False), (False, True)])
        texts = tuple(
            spell(text) if chosen else text
            for text, chosen in zip(example.texts, sides, strict=True)
        )
        if texts != example.texts:
            result.append(replace(example, texts=texts, trusted=True))
    return result


def in_passages(examples: Iterable[Example], documents: Sequence[Sequence[str]]) -> list[Example]:
    """Each pair with its premise between sentences of a document, one to three in all."""
    rng = random.Random(SEED)
    result = []
    for example in examples:
        around = _run(documents, rng.randint(1, 3), rng)
        place = rng.randint(0, len(around))
        premise = " ".join([*around[:place], example.texts[0], *around[place:]])
        result.append(replace(example, texts=(premise, example.texts[1]), trusted=True))
    return result


def passages(documents: Sequence[Sequence[str]], number: int) -> list[Example]:
    """Passages of two to five sentences, with the sentence after it (neutral) or one of its sentences (entailed)."""
    rng = random.Random(SEED)
    result = []
    for _ in range(number):
        run = _run(documents, rng.randint(3, 6), rng)
        *passage, following = run
        if rng.random() < 0.7 or following in passage:
            result.append(pair(" ".join(passage), following, "neutral"))
        else:
            result.append(pair(" ".join(passage), rng.choice(passage), "entailment"))
    return [example for example in result if example.texts[0]]


def _run(documents: Sequence[Sequence[str]], length: int, rng: random.Random) -> Sequence[str]:
    document = rng.choice(documents)
    start = rng.randrange(max(1, len(document) - length))
    return document[start : start + length]


def _labelled(data: Path) -> list[Example]:
    """Labelled pairs of SNLI's, MultiNLI's and New Protocols' train splits, a third each."""
    readers = (nli.SNLI_TRAIN, nli.MNLI_TRAIN, nli_sets.NEW_PROTOCOLS_TRAIN)
    return [
        example
        for source in readers
        for example in drawn(source.read(data), (SPELLED + IN_PASSAGES) // len(readers))
    ]


def _train(data: Path) -> list[Example]:
    templates = from_templates(FILE, "train", TEMPLATE_PAIRS)
    labelled = _labelled(data)
    random.Random(SEED).shuffle(labelled)
    documents = broad_text.documents(data, TRAIN_KINDS)
    return [
        *templates,
        *spelled([*drawn(templates, SPELLED // 4), *labelled[:SPELLED]]),
        *in_passages(labelled[SPELLED:], documents),
        *passages(documents, PASSAGES),
    ]


TRAIN = Source(
    "plain",
    f"Apache-2.0; {nli.SNLI_LICENCE}; {nli.MNLI_LICENCE}; {nli_sets.WIKIPEDIA}; {broad_text.PAIR_LICENCE}",
    "40,000 pairs of templates; 75,000 pairs in another spelling, 20,000 with a longer premise; 12,000 passages",
    _train,
)


def _templates(section: str, number: int = DEV_PAIRS) -> Reader:
    return lambda _: from_templates(FILE, section, number)


TEMPLATES = Source(
    "plain", "Apache-2.0", "40,000 pairs of templates", _templates("train", TEMPLATE_PAIRS)
)


def _paragraphs(data: Path) -> list[Example]:
    documents = broad_text.documents(data, DEV_KINDS)
    pairs = in_passages(drawn(mnli.DEV.read(data), 3 * DEV_PAIRS), documents)
    return [*pairs, *passages(documents, DEV_PAIRS)]


ROLES = Source("roles", "Apache-2.0", "300 pairs of templates", _templates("roles"))
"""Agent and patient are exchanged: never entailment."""
FORMS = Source("forms", "Apache-2.0", "300 pairs of templates", _templates("forms"))
"""Active and passive, and numbers in words and digits: always entailment."""
MONOTONICITY = Source(
    "monotonicity", "Apache-2.0", "300 pairs of templates", _templates("monotonicity")
)
"""One text has all words of the other and some more: whether it follows depends on the words before these."""
PARAGRAPHS = Source(
    "paragraphs",
    f"{nli.MNLI_LICENCE}; {broad_text.PAIR_LICENCE}",
    "900 pairs of MultiNLI's matched dev split whose premise stands among other sentences, and 300 passages",
    _paragraphs,
)
TASKS = (Task("plain", "nli", NLI_LABELS, (TRAIN,), FORMS, nli.SNLI_TEST),)
