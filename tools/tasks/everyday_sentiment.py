"""Sentiment of everyday texts (`everyday`): opinions of things and services, emoji, facts and requests.

The sentences of `sentiment.toml` are right by construction. Sentences of kinds of `data/text` that state, ask or
instruct are neutral; of others a linear model of a transformer's vectors is sure (`python -m tools everyday`).
"""

import random
from dataclasses import replace
from pathlib import Path

from heedful.training.data_folder import find
from heedful.training.tasks.base import Example, Reader, Source
from tools.tasks import broad_text
from tools.tasks.folds import drawn
from tools.tasks.labelled import examples, json_lines
from tools.tasks.templates import SENTIMENT, from_templates

FILE = "sentiment.toml"
SEED = 1
TEMPLATES, DEV_SENTENCES = 40_000, 300
NEUTRAL = 3_000
"""Sentences of a kind, at most."""
JUDGED = "everyday/train.jsonl"
LABELS = ("negative", "neutral", "positive")
NEUTRAL_KINDS = ("dictionary", "encyclopaedic", "government", "questions", "recipes", "techdoc")
LONGEST = 60
"""Words of a sentence."""
_NEUTRAL = SENTIMENT["0"]


def _templates(section: str, number: int) -> Reader:
    return lambda _: from_templates(FILE, section, number, SENTIMENT)


def _unpunctuated(_: Path) -> list[Example]:
    """Some of the templates' sentences in lower case, or without the stop at their end."""
    rng = random.Random(SEED)
    return [
        Example((rng.choice([text.lower(), text.rstrip(".!")]),), example.label, trusted=True)
        for example in from_templates(FILE, "train", TEMPLATES // 4, SENTIMENT)
        if (text := example.texts[0]).rstrip(".!")
    ]


def _sentences(kinds: tuple[str, ...], number: int, label: float) -> Reader:
    def read(data: Path) -> list[Example]:
        sentences = []
        for kind in kinds:
            texts = [text for file in broad_text.documents(data, [kind]) for text in file]
            short = [text for text in dict.fromkeys(texts) if len(text.split()) <= LONGEST]
            sentences += drawn(short, number)
        return [Example((text,), label, trusted=True) for text in sentences]

    return read


def _judged(data: Path) -> list[Example]:
    path = find(data, (JUDGED,), dataset="everyday")
    judged = examples(path, json_lines(path), LABELS)
    return [replace(example, trusted=True) for example in judged]


CERTAIN = (
    Source(
        "everyday", "Apache-2.0", "40,000 sentences of templates", _templates("train", TEMPLATES)
    ),
    Source("everyday", "Apache-2.0", "10,000 of them in another spelling", _unpunctuated),
    Source(
        "text",
        broad_text.PAIR_LICENCE,
        f"3,000 sentences of each of {', '.join(NEUTRAL_KINDS)}, as neutral",
        _sentences(NEUTRAL_KINDS, NEUTRAL, _NEUTRAL),
    ),
)
"""Right by construction."""
TRAIN = (
    *CERTAIN,
    Source(
        "text",
        broad_text.PAIR_LICENCE,
        "sentences of which a linear model of all-mpnet-base-v2's vectors is sure (tools/everyday.py)",
        _judged,
    ),
)
DEV = Source(
    "everyday", "Apache-2.0", "300 sentences of templates", _templates("everyday", DEV_SENTENCES)
)
