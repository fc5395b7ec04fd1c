"""What an encoder's graph computes alone and in company: the same, to the last bit where it matters."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper

from heedful.export.parity import EXPLAINED, cases
from heedful.runtime.card import EXPLAIN_INT8, Card
from heedful.runtime.explain_graph import ExplainGraph
from heedful.runtime.graphs import Feeds, encoder_feeds
from heedful.runtime.session import open_session
from heedful.text.batch import Batch, Sentence, collate
from heedful.text.pieces import Lexicon

Array = npt.NDArray[np.generic]

THREADS = 3
"""Of the session that reads batches: where a thread's share ends may change a last bit as well."""


@dataclass(frozen=True, slots=True)
class Company:
    """`unsteady` values have other bits in a batch than alone; the vector differs by `difference` at most."""

    unsteady: frozenset[str]
    difference: float


def compare(model: onnx.ModelProto, values: Collection[str], card: Card, vocab: Lexicon) -> Company:
    """Every sentence of the parity cases' batches, whose length and company vary, and again alone.

    `values` are named in the graph. One that is not (B, L, ..) or (B, ..) counts as unsteady.
    """
    names = sorted(values)
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names
    )
    graph = watched.SerializeToString()
    by_one, by_many = (_open(graph, threads) for threads in (1, THREADS))
    unsteady: set[str] = set()
    difference = 0.0
    for batch, alpha in _batches(card, vocab):
        together = by_many.run(["embedding", *names], _feeds(card, batch, alpha))
        for row, sentence in enumerate(sentences(batch)):
            feeds = _feeds(card, collate([sentence]), alpha)
            alone = by_one.run(["embedding", *names], feeds)
            difference = max(difference, float(np.abs(together[0][row] - alone[0][0]).max()))
            unsteady.update(
                name
                for name, one, all_rows in zip(names, alone[1:], together[1:], strict=True)
                if not _same(one, all_rows, row, len(batch.lengths))
            )
    return Company(frozenset(unsteady), difference)


def explained(
    files: Mapping[str, bytes], model: onnx.ModelProto, card: Card, vocab: Lexicon
) -> float:
    """How far the vector of explain.int8.onnx, at most, is from that of `model`, encoder.int8.onnx whole."""
    explainer = ExplainGraph(files, card, EXPLAIN_INT8)
    session = _open(model.SerializeToString(), threads=1)
    difference = 0.0
    for batch, _ in _batches(card, vocab):
        for sentence in sentences(batch):
            one = collate([sentence])
            if one.ids.size > min(EXPLAINED, explainer.max_tokens):
                continue
            (plain,) = session.run(None, encoder_feeds(card, one))
            found = explainer.run(explainer.feeds(one)).embedding
            difference = max(difference, float(np.abs(found - plain).max()))
    return difference


def sentences(batch: Batch) -> Iterator[Sentence]:
    """What the batch was made of."""
    for row, length in enumerate(batch.lengths):
        heads = batch.heads[row, :length]
        if batch.pieces is None:
            yield Sentence(batch.ids[row, :length], heads)
        else:
            pieces = batch.pieces[row, :length]
            yield Sentence(batch.ids[row, : pieces.sum() + 2], heads, pieces)


def _batches(card: Card, vocab: Lexicon) -> Iterator[tuple[Batch, float]]:
    """The parity cases of more than one sentence, with their alphas."""
    for case in cases(len(vocab), card.max_tokens, vocab.limit):
        if len(case.batch.lengths) > 1:
            yield case.batch, case.alpha


def _feeds(card: Card, batch: Batch, alpha: float) -> Feeds:
    feeds = encoder_feeds(card, batch)
    if "alpha" in feeds:
        feeds["alpha"] = np.array(alpha, np.float32)
    return feeds


def _open(graph: bytes, threads: int) -> onnxruntime.InferenceSession:
    return open_session(graph, threads=threads)


def _same(alone: Array, together: Array, row: int, size: int) -> bool:
    """Whether a sentence's (1, l, ..) is what stands in its row of (size, L, ..), up to its length."""
    if len(alone) != 1 or len(together) != size or alone.ndim != together.ndim:
        return False
    found = together[row]
    if alone.ndim > 2:
        found = found[: alone.shape[1]]
    return np.array_equal(alone[0], found)
