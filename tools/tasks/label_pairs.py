"""Pairs of a text and a sentence that names a label (`labels`): the input of an NLI model in zero-shot classification.

Labels are the sentiment of reviews, headings, and kinds of text. No set with which zero-shot classification is
measured is among them (docs/notes/zero-shot.md).
"""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful.text.kinds import NLI_LABELS
from heedful.training.data_folder import records
from heedful.training.tasks.base import Example, Source, Task
from tools.tasks import broad_text, imdb, nli
from tools.tasks.folds import drawn
from tools.tasks.labelled import UNSTATED
from tools.tasks.templates import pair

SEED = 1
REVIEWS, HEADINGS, SENTENCES = 8_000, 4_000, 1_000
"""Texts at most: reviews, pairs of a file of headings, sentences of a kind."""
TEMPLATES = ("This example is {}.", "This text is {}.", "The text is about {}.", "{}")
FILES = ("openstax_headings", "heading_first_sentence_markdown", "wikinews_title_lead")
KINDS = {
    "books": "fiction",
    "dialogue": "a conversation",
    "dictionary": "a definition",
    "government": "government",
    "medical": "health",
    "news": "news",
    "questions": "a question",
    "recipes": "cooking",
    "speeches": "politics",
    "techdoc": "software",
    "textbooks": "education",
}
"""Kinds of `data/text`, and the label of each."""
_END = re.compile(r"(?<=[.!?])\s+")


def _pairs(texts: Sequence[tuple[str, str]], opposite: bool) -> Iterator[Example]:
    """Each text with the sentence of its label, and with the sentence of another label in the same words.

    The other label contradicts where labels are opposites, and is neutral elsewhere.
    """
    rng = random.Random(SEED)
    labels = sorted({label for _, label in texts})
    for text, label in texts:
        template = rng.choice(TEMPLATES)
        other = rng.choice([each for each in rng.sample(labels, 2) if each != label])
        yield pair(text, template.replace("{}", label), "entailment")
        yield pair(text, template.replace("{}", other), "contradiction" if opposite else "neutral")


def _reviews(data: Path) -> Iterator[tuple[str, str]]:
    """The last one to three sentences of a review, which sum it up, and its sentiment."""
    rng = random.Random(SEED)
    for review in rng.sample(imdb.TRAIN(data), REVIEWS):
        end = " ".join(_END.split(review.texts[0])[-rng.randint(1, 3) :])
        yield end[-400:], imdb.LABELS[int(review.label)]


def _headings(data: Path, file: str) -> Iterator[tuple[str, str]]:
    rows = list(records(data / "text" / "pairs" / f"{file}.jsonl.gz"))
    for row in drawn(rows, HEADINGS):
        yield row["b"], row["a"]


def _kinds(data: Path) -> Iterator[tuple[str, str]]:
    for kind, label in KINDS.items():
        files = broad_text.documents(data, [kind])
        texts = [text for file in files for text in file]
        for text in drawn(texts, SENTENCES):
            yield text, label


def _train(data: Path) -> list[Example]:
    return [
        *_pairs(list(_reviews(data)), opposite=True),
        *(each for file in FILES for each in _pairs(list(_headings(data, file)), opposite=False)),
        *_pairs(list(_kinds(data)), opposite=False),
    ]


TRAIN = Source(
    "labels",
    f"{UNSTATED}; {broad_text.PAIR_LICENCE}",
    "ends of 8,000 reviews of IMDB, 9,000 headings with their first sentences and 11,000 sentences of 11 kinds, "
    "with the sentence of their label and of another",
    _train,
)
TASKS = (Task("labels", "nli", NLI_LABELS, (TRAIN,), nli.SNLI_DEV, nli.SNLI_TEST),)
