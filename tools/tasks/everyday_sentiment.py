"""Sentiment of what people write every day (`everyday`): opinions of things and services, emoji, facts and requests.

The sentences of `sentiment.toml` are right by construction. Sentences of kinds of `data/text` that state, ask or
instruct are neutral; those of other kinds have no label: a teacher judges them.
"""

import random
from pathlib import Path

from heedful.training.tasks.base import UNLABELLED, Example, Reader, Source
from tools.tasks import broad_text
from tools.tasks.folds import drawn
from tools.tasks.templates import SENTIMENT, from_templates

FILE = "sentiment.toml"
SEED = 1
TEMPLATES, DEV_SENTENCES = 40_000, 300
NEUTRAL, UNJUDGED = 3_000, 6_000
"""At most so many sentences of a kind."""
NEUTRAL_KINDS = ("dictionary", "encyclopaedic", "government", "questions", "recipes", "techdoc")
UNJUDGED_KINDS = ("books", "dialogue", "medical", "news", "speeches", "stackexchange")
LONGEST = 60
"""Words of a sentence."""
_NEUTRAL = SENTIMENT["0"]


def _templates(section: str, number: int) -> Reader:
    return lambda _: from_templates(FILE, section, number, SENTIMENT)


def _unpunctuated(_: Path) -> list[Example]:
    """Some of the templates' sentences in lower case, or without the stop at their end."""
    rng = random.Random(SEED)
    return [
        Example((rng.choice([text.lower(), text.rstrip(".!")]),), one.label, trusted=True)
        for one in from_templates(FILE, "train", TEMPLATES // 4, SENTIMENT)
        if (text := one.texts[0]).rstrip(".!")
    ]


def _sentences(kinds: tuple[str, ...], number: int, label: float) -> Reader:
    def read(data: Path) -> list[Example]:
        found = []
        for kind in kinds:
            texts = [text for file in broad_text.documents(data, [kind]) for text in file]
            short = [text for text in dict.fromkeys(texts) if len(text.split()) <= LONGEST]
            found += drawn(short, number)
        return [Example((text,), label, trusted=label != UNLABELLED) for text in found]

    return read


TRAIN = (
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
    Source(
        "text",
        broad_text.PAIR_LICENCE,
        f"6,000 sentences of each of {', '.join(UNJUDGED_KINDS)}, no labels",
        _sentences(UNJUDGED_KINDS, UNJUDGED, UNLABELLED),
    ),
)
DEV = Source(
    "everyday", "Apache-2.0", "300 sentences of templates", _templates("everyday", DEV_SENTENCES)
)
