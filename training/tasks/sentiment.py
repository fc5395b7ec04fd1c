"""Sentiment of everyday texts in three classes: phrases of the Stanford Sentiment Treebank and whole IMDB reviews."""

from pathlib import Path

from heedful.training.tasks import imdb, sst
from heedful.training.tasks.base import Example, Reader, Source, Task

LABELS = ("negative", "neutral", "positive")


def three(label: int) -> int:
    """Five classes of the treebank to three."""
    return 0 if label < 2 else 1 if label == 2 else 2


def _reviews(read: Reader) -> Reader:
    """IMDB's negative and positive: no review there is neutral."""

    def mapped(data: Path) -> list[Example]:
        return [Example(one.texts, 2 * one.label) for one in read(data)]

    return mapped


(_IMDB,) = imdb.TASKS
(_REVIEWS,) = _IMDB.train
_SST_DEV = sst.sentences("dev", three)


def _dev(data: Path) -> list[Example]:
    return [*_SST_DEV(data), *_reviews(imdb.DEV)(data)]


TASKS = (
    Task(
        name="sentiment",
        kind="classification",
        labels=LABELS,
        train=(
            Source("sst", sst.LICENCE, "every node of the train trees", sst.phrases(three)),
            Source("imdb", _REVIEWS.licence, _REVIEWS.note, _reviews(_REVIEWS.read)),
        ),
        dev=Source("sst and imdb", sst.LICENCE, "SST's dev sentences and 1,000 reviews", _dev),
        test=Source("imdb", _IMDB.test.licence, _IMDB.test.note, _reviews(_IMDB.test.read)),
    ),
)
