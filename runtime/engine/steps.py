"""Steps that requests share: texts to parses, and sentences to vectors."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.runtime.engine.cache import Key, VectorCache
from heedful.runtime.engine.runners import EncoderRunner
from heedful.runtime.engine.work import Steps, run
from heedful.runtime.errors import InferenceFailed
from heedful.text.arrays import Floats
from heedful.text.batch import Sentence
from heedful.text.parse import Parse, ParseJob, Parser, parse_of
from heedful.text.tokenize import Tokens, effort

EFFORT = 40_000
"""What is tokenized without a pause, as `effort` counts: about 64 new texts of 20 words."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Vectors (N, D) and seconds: spent waiting, and by the batches that held the sentences."""

    vectors: Floats
    queue: float
    inference: float


def parse(parser: Parser, jobs: Sequence[ParseJob]) -> Steps[list[Parse]]:
    """One parse per job, in order. Raises InferenceFailed."""
    texts: list[Tokens] = []
    spent = 0
    for job in jobs:
        spent += effort(job.text, job.max_tokens)
        if spent > EFFORT and texts:
            yield None
            spent = 0
        texts.append(parser.tokenize(job))
    with_tree = [job.tree and len(tokens) > 0 for job, tokens in zip(jobs, texts, strict=True)]
    work = yield from run(
        parser.trees, [one for one, has in zip(texts, with_tree, strict=True) if has]
    )
    trees = iter(work.outputs)
    return [
        parse_of(job, tokens, next(trees) if has_tree else None)
        for job, tokens, has_tree in zip(jobs, texts, with_tree, strict=True)
    ]


def encode(
    encoder: EncoderRunner, sentences: Sequence[Sentence], cache: VectorCache | None = None
) -> Steps[Encoded]:
    """The sentences' vectors, in order, not scaled; equal ones are encoded once. Raises InferenceFailed."""
    began = time.perf_counter()
    card = encoder.card
    keys: list[Key] = [(card.version, card.alpha, sentence.key) for sentence in sentences]
    distinct = dict(zip(keys, sentences, strict=True))
    vectors = cache.get(list(distinct)) if cache else {}
    missing = {key: sentence for key, sentence in distinct.items() if key not in vectors}
    work = yield from run(encoder, list(missing.values()))
    for key, vector in zip(missing, work.outputs, strict=True):
        vectors[key] = vector
        if cache:
            cache.put(key, vector)
    rows = np.array([vectors[key] for key in keys])
    if not np.isfinite(rows).all():
        raise InferenceFailed("the model gave NaN or infinity")
    waited = time.perf_counter() - began - work.seconds
    return Encoded(rows, max(waited, 0.0), work.seconds)
