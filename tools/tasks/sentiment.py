"""Sentiment of everyday texts in three classes: phrases of the Stanford Sentiment Treebank and whole IMDB reviews.

`sentiment-student` adds sentences without a label, which a teacher judges. `sentiment-everyday` adds opinions of
things and services, emoji, facts and requests.
"""

from dataclasses import replace
from pathlib import Path

from heedful.training.tasks.base import Example, Reader, Source, Task
from tools.tasks import embed, everyday_sentiment, imdb, nli, sst
from tools.tasks.everyday_sentiment import LABELS
from tools.tasks.folds import sample


def three(label: int) -> int:
    """Five classes of the treebank to three."""
    return 0 if label < 2 else 1 if label == 2 else 2


def _reviews(read: Reader) -> Reader:
    """IMDB's negative and positive: no review there is neutral."""

    def mapped(data: Path) -> list[Example]:
        return [Example(review.texts, 2 * review.label) for review in read(data)]

    return mapped


(_IMDB,) = imdb.TASKS
(_REVIEWS,) = _IMDB.train
_SST_DEV = sst.sentences("dev", three)


def _dev(data: Path) -> list[Example]:
    return [*_SST_DEV(data), *_reviews(imdb.DEV)(data)]


_PHRASES = Source("sst", sst.LICENCE, "every node of the train trees", sst.phrases(three))
_LABELLED = replace(_REVIEWS, read=_reviews(_REVIEWS.read))


def _sure(data: Path) -> list[Example]:
    """Whole reviews, of which the teacher reads only the beginning."""
    return [replace(review, trusted=True) for review in _LABELLED.read(data)]


SENTENCES = (
    embed.sentences_of(_REVIEWS, embed.BOTH, "sentences", 100_000, times=1),
    embed.sentences_of(nli.MNLI_TRAIN, embed.BOTH, "sentences", times=1),
    embed.sentences_of(nli.SNLI_TRAIN, embed.FIRST, "premises", 10_000, times=1),
)
"""Without labels: a teacher judges them."""

SENTIMENT = Task(
    name="sentiment",
    kind="classification",
    labels=LABELS,
    train=(_PHRASES, _LABELLED),
    dev=Source("sst and imdb", sst.LICENCE, "SST's dev sentences and 1,000 reviews", _dev),
    test=replace(_IMDB.test, read=_reviews(_IMDB.test.read)),
)
TASKS = (
    SENTIMENT,
    SENTIMENT.variant("sentiment-student", _PHRASES, replace(_LABELLED, read=_sure), *SENTENCES),
    SENTIMENT.variant(
        "sentiment-everyday",
        sample(_PHRASES, 80_000),
        replace(_LABELLED, read=_sure),
        sample(SENTENCES[0], 60_000),
        *everyday_sentiment.TRAIN,
    ),
)
