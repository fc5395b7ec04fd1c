"""everyday: sentences of broad text with their sentiment, by a logistic regression on mpnet's vectors.

It learns from phrases of the Stanford Sentiment Treebank and from sentences that are right by construction
(`tools.tasks.everyday_sentiment`); an answer below the probability SURE is left out.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer
from sklearn.linear_model import LogisticRegression

from heedful.cli.options import DATA, Data
from heedful.text.arrays import Floats
from heedful.training import tasks
from heedful.training.config import CACHE
from heedful.training.tasks.base import Example
from heedful.training.teacher_vectors import stored_vectors
from heedful.training.teachers import MPNET
from tools import json_lines
from tools.tasks import everyday_sentiment, sentiment, sst
from tools.tasks.folds import drawn

BROAD = "embed-third"
"""The task whose texts are judged."""
PHRASES = 8_000
TEMPLATES = 3_000
"""Sentences of each source that is right by construction, at most."""
SHORTEST, LONGEST = 3, 40
"""Words of a sentence."""
SURE = 0.6
"""Lowest probability of an answer to write."""
OF_A_CLASS = 30_000
"""Sentences of a class, at most."""


def command(data: Data = DATA) -> None:
    """Write everyday/train.jsonl into the data folder. mpnet reads some 50 sentences a second on a core."""
    labelled = _labelled(data)
    texts = [
        text for text in tasks.get(BROAD).texts(data) if SHORTEST <= len(text.split()) <= LONGEST
    ]
    model = LogisticRegression(max_iter=300)
    vectors = _vectors([example.texts[0] for example in labelled])
    model.fit(vectors, [int(example.label) for example in labelled])
    answers = model.predict_proba(_vectors(texts))
    rows: list[dict[str, str]] = []
    for label, name in enumerate(everyday_sentiment.LABELS):
        sure = np.flatnonzero((answers.argmax(axis=1) == label) & (answers[:, label] >= SURE))
        rows += [{"text": texts[i], "label": name} for i in drawn(sure.tolist(), OF_A_CLASS)]
    file = data / everyday_sentiment.JUDGED
    json_lines.write(rows, file)
    typer.echo(f"{file}: {len(rows):,} of {len(texts):,} sentences")


def _labelled(data: Path) -> list[Example]:
    phrases = drawn(sst.phrases(sentiment.three)(data), PHRASES)
    certain = [
        example
        for source in everyday_sentiment.CERTAIN
        for example in drawn(source.read(data), TEMPLATES)
    ]
    return [*sst.sentences("train", sentiment.three)(data), *phrases, *certain]


def _vectors(texts: Sequence[str]) -> Floats:
    """(N, 768)."""
    return stored_vectors(MPNET, texts, CACHE, "cpu").astype(np.float32)
