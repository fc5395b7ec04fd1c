"""Inputs and outputs of a bundle's ONNX graphs, and whether they agree with the card."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnxruntime

from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, HEAD, Card
from heedful.runtime.errors import BundleError
from heedful.text import composition
from heedful.text.batch import Batch, Sentence, collate
from heedful.text.errors import GraphError
from heedful.text.graph import bounded_run, open_session
from heedful.text.kinds import HEAD_INPUTS, RELATEDNESS_LEVELS
from heedful.text.pieces import Lexicon
from heedful.text.vocab import Vocab

Feeds = dict[str, npt.NDArray[np.generic]]
Signature = dict[str, tuple[str, int]]  # name -> (ONNX Runtime's type, rank)


def encoder_inputs(card: Card) -> Signature:
    """Inputs of encoder.onnx."""
    inputs: Signature = {"ids": ("tensor(int64)", 2), "lengths": ("tensor(int64)", 1)}
    if card.tree:
        inputs["heads"] = ("tensor(int64)", 2)
    if card.alpha is not None:
        inputs["alpha"] = ("tensor(float)", 0)
    if card.pieces:
        inputs["pieces"] = ("tensor(int64)", 2)
    if card.composed:
        inputs["features"] = ("tensor(int64)", 2)
    return inputs


def encoder_feeds(card: Card, batch: Batch, alpha: float | None = None) -> Feeds:
    """Inputs of encoder.onnx for a batch. Without `alpha` the card's is read."""
    return batch.feeds(encoder_inputs(card), card.alpha if alpha is None else alpha)


def check_graphs(files: Mapping[str, bytes], card: Card, vocab: Lexicon) -> None:
    """Open each graph without optimisations, and check it. Raises BundleError."""
    for file in (ENCODER, ENCODER_INT8):
        if file in files:
            check_encoder(_open(files, card, file), card, file, vocab)
    if card.kind != "embedding":
        check_head(_open(files, card, HEAD), card)


def check_encoder(
    session: onnxruntime.InferenceSession, card: Card, file: str, vocab: Lexicon
) -> None:
    """Raise BundleError unless the encoder of `file` has the card's inputs and output, and runs.

    It runs on the last id and on the longest sentence in pieces, so that a table that is too small fails here.
    """
    batches = [[_worst_case(vocab, 1)], [_worst_case(vocab, 3)] * 2]
    if card.composed:
        last = np.full((2, composition.FEATURES), card.composed - 1)
        batches.append([Sentence(np.array([-1, -2]), np.arange(2), features=last)])
    runs = [(encoder_feeds(card, collate(batch)), (len(batch), card.width)) for batch in batches]
    _check(session, card, file, encoder_inputs(card), "embedding", runs)


def check_head(session: onnxruntime.InferenceSession, card: Card) -> None:
    """Raise BundleError unless head.onnx has the card's inputs and output, and runs."""
    inputs = HEAD_INPUTS[card.kind]
    width = RELATEDNESS_LEVELS if card.kind == "relatedness" else len(card.labels)
    sides: list[npt.NDArray[np.generic]] = [np.zeros((B, card.width), np.float32) for B in (1, 3)]
    runs = [(dict.fromkeys(inputs, side), (len(side), width)) for side in sides]
    _check(session, card, HEAD, dict.fromkeys(inputs, ("tensor(float)", 2)), "logits", runs)


def _worst_case(vocab: Lexicon, words: int) -> Sentence:
    """The last id, repeated for each word; with word pieces, up to the length limit."""
    if isinstance(vocab, Vocab):
        return Sentence(np.full(words, len(vocab) - 1), np.arange(words))
    pieces = np.ones(min(words, vocab.limit - 2), np.int64)
    pieces[0] += vocab.limit - 2 - len(pieces)
    return Sentence(np.full(vocab.limit, len(vocab) - 1), np.arange(len(pieces)), pieces)


def _open(files: Mapping[str, bytes], card: Card, file: str) -> onnxruntime.InferenceSession:
    try:
        return open_session(files[file], optimize=False, files={ENCODER: files[ENCODER]})
    except GraphError as error:
        raise BundleError(card.name, file, f"ONNX Runtime cannot load it: {error}") from error


def _check(
    session: onnxruntime.InferenceSession,
    card: Card,
    file: str,
    inputs: Signature,
    output: str,
    runs: Sequence[tuple[Feeds, tuple[int, int]]],
) -> None:
    """Raise BundleError unless the graph has these inputs and output, and `runs`: feeds and the output's shape."""
    outputs: Signature = {output: ("tensor(float)", 2)}
    for name, nodes, expected in (
        ("inputs", session.get_inputs(), inputs),
        ("outputs", session.get_outputs(), outputs),
    ):
        actual = {node.name: (node.type, len(node.shape)) for node in nodes}
        if actual != expected:
            message = f"has the {name} {_described(actual)}, not {_described(expected)}"
            raise BundleError(card.name, file, message)
    for feeds, shape in runs:
        try:
            with bounded_run() as options:
                (values,) = session.run(None, feeds, options)
        except GraphError as error:
            shapes = ", ".join(f"{name} {value.shape}" for name, value in feeds.items())
            raise BundleError(card.name, file, f"does not run on {shapes}: {error}") from error
        if values.shape != shape:
            raise BundleError(card.name, file, f"gives {values.shape}, the card says {shape}")
        if not np.isfinite(values).all():
            raise BundleError(card.name, file, "gives NaN or infinity")


def _described(signature: Signature) -> str:
    return ", ".join(
        f"{name} {kind} of rank {rank}" for name, (kind, rank) in sorted(signature.items())
    )
