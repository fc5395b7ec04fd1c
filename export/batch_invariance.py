"""Whether an encoder's graph computes the same for a sentence alone and in a batch, in chosen values bit by bit."""

import copy
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from heedful.export.parity import EXPLAINED, cases
from heedful.runtime.bundles.card import EXPLAIN_INT8, Card
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.explain.graph import ExplainGraph
from heedful.text.batch import Batch, Sentence, collate
from heedful.text.graph import open_session
from heedful.text.pieces import Lexicon

Array = npt.NDArray[np.generic]

THREADS = 3
"""Threads of the session that runs batches: the division of rows among threads may change a last bit too."""


@dataclass(frozen=True, slots=True)
class BatchInvariance:
    """`dependent` values have other bits in a batch than alone; the vector differs by at most `deviation`."""

    dependent: frozenset[str]
    deviation: float


def compare(
    model: onnx.ModelProto, values: Collection[str], card: Card, vocab: Lexicon
) -> BatchInvariance:
    """Run every sentence of the parity cases in its batch and alone; compare the vector and `values`.

    `values` are named in the graph. A value that is neither (B, L, ..) nor (B, ..) counts as dependent. The graph runs
    with kernels and without, because a service may have none.
    """
    results = [_compare(model, values, card, vocab, kernels=kernels) for kernels in (True, False)]
    dependent = frozenset[str]().union(*(result.dependent for result in results))
    return BatchInvariance(dependent, max(result.deviation for result in results))


def _compare(
    model: onnx.ModelProto, values: Collection[str], card: Card, vocab: Lexicon, *, kernels: bool
) -> BatchInvariance:
    names = sorted(values)
    watched = copy.deepcopy(model)
    watched.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names
    )
    graph = watched.SerializeToString()
    single, batched = (
        open_session(graph, threads=threads, kernels=kernels) for threads in (1, THREADS)
    )
    dependent: set[str] = set()
    deviation = 0.0
    for batch, alpha in _batches(card, vocab):
        in_batch = batched.run(["embedding", *names], encoder_feeds(card, batch, alpha))
        for row, sentence in enumerate(sentences(batch)):
            feeds = encoder_feeds(card, collate([sentence]), alpha)
            by_itself = single.run(["embedding", *names], feeds)
            deviation = max(deviation, float(np.abs(in_batch[0][row] - by_itself[0][0]).max()))
            dependent.update(
                name
                for name, value, rows in zip(names, by_itself[1:], in_batch[1:], strict=True)
                if not _same(value, rows, row, len(batch.lengths))
            )
    return BatchInvariance(frozenset(dependent), deviation)


def explanation_deviation(
    files: Mapping[str, bytes], model: onnx.ModelProto, card: Card, vocab: Lexicon
) -> float:
    """The largest difference between explain.int8.onnx's vector and that of `model`, the int8 encoder."""
    explainer = ExplainGraph(files, card, EXPLAIN_INT8)
    session = open_session(model.SerializeToString())
    deviation = 0.0
    for batch, _ in _batches(card, vocab):
        for sentence in sentences(batch):
            single = collate([sentence])
            if single.ids.size > min(EXPLAINED, explainer.max_tokens):
                continue
            (vector,) = session.run(None, encoder_feeds(card, single))
            explained = explainer.run(explainer.feeds(single)).embedding
            deviation = max(deviation, float(np.abs(explained - vector).max()))
    return deviation


def sentences(batch: Batch) -> Iterator[Sentence]:
    """The sentences of a batch, as before `collate`."""
    for row, length in enumerate(batch.lengths):
        heads = batch.heads[row, :length]
        if batch.pieces is None:
            ids, features = batch.ids[row, :length].copy(), None
            if batch.features is not None and (composed := ids < 0).any():
                features = batch.features[-ids[composed] - 1]
                ids[composed] = -1 - np.arange(len(features))
            yield Sentence(ids, heads, features=features)
        else:
            pieces = batch.pieces[row, :length]
            yield Sentence(batch.ids[row, : pieces.sum() + 2], heads, pieces)


def _batches(card: Card, vocab: Lexicon) -> Iterator[tuple[Batch, float]]:
    """The parity cases of more than one sentence, with their alphas."""
    for case in cases(len(vocab), card.max_tokens, vocab.limit, card.composed):
        if len(case.batch.lengths) > 1:
            yield case.batch, case.alpha


def _same(by_itself: Array, in_batch: Array, row: int, size: int) -> bool:
    """Whether a sentence's (1, l, ..) equals its row of (size, L, ..), up to its length."""
    if len(by_itself) != 1 or len(in_batch) != size or by_itself.ndim != in_batch.ndim:
        return False
    value = in_batch[row]
    if by_itself.ndim > 2:
        value = value[: by_itself.shape[1]]
    return np.array_equal(by_itself[0], value)
