"""Does an encoder's graph compute the same for a sentence alone and in a batch, to the last bit where it matters?"""

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
"""Threads of the session that runs batches: where one thread's rows end may change a last bit as well."""


@dataclass(frozen=True, slots=True)
class BatchInvariance:
    """`dependent` values have other bits in a batch than alone; the vector differs by at most `deviation`."""

    dependent: frozenset[str]
    deviation: float


def compare(
    model: onnx.ModelProto, values: Collection[str], card: Card, vocab: Lexicon
) -> BatchInvariance:
    """Run every sentence of the parity cases in its batch and alone; compare the vector and `values`.

    `values` are named in the graph. One that is not (B, L, ..) or (B, ..) counts as dependent. Whoever serves the
    bundle may have no kernels, so the operators run both as kernels and as the graph defines them.
    """
    found = [_compare(model, values, card, vocab, kernels=kernels) for kernels in (True, False)]
    dependent = frozenset[str]().union(*(one.dependent for one in found))
    return BatchInvariance(dependent, max(one.deviation for one in found))


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
        together = batched.run(["embedding", *names], encoder_feeds(card, batch, alpha))
        for row, sentence in enumerate(sentences(batch)):
            feeds = encoder_feeds(card, collate([sentence]), alpha)
            alone = single.run(["embedding", *names], feeds)
            deviation = max(deviation, float(np.abs(together[0][row] - alone[0][0]).max()))
            dependent.update(
                name
                for name, one, all_rows in zip(names, alone[1:], together[1:], strict=True)
                if not _same(one, all_rows, row, len(batch.lengths))
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
            one = collate([sentence])
            if one.ids.size > min(EXPLAINED, explainer.max_tokens):
                continue
            (plain,) = session.run(None, encoder_feeds(card, one))
            found = explainer.run(explainer.feeds(one)).embedding
            deviation = max(deviation, float(np.abs(found - plain).max()))
    return deviation


def sentences(batch: Batch) -> Iterator[Sentence]:
    """The sentences that `collate` made the batch of."""
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


def _same(alone: Array, together: Array, row: int, size: int) -> bool:
    """Whether a sentence's (1, l, ..) equals its row of (size, L, ..), up to its length."""
    if len(alone) != 1 or len(together) != size or alone.ndim != together.ndim:
        return False
    found = together[row]
    if alone.ndim > 2:
        found = found[: alone.shape[1]]
    return np.array_equal(alone[0], found)
