"""The int8 graphs of a bundle, which read their weights from encoder.onnx."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import onnx

from heedful.export import batch_invariance
from heedful.export.composed_branch import composed_in_branch
from heedful.export.errors import ExportError
from heedful.export.int8 import float_graph, int8_graph, products
from heedful.export.weight_sharing import externalize_weights, serialize, share_weights
from heedful.export.weight_storage import store_half
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8, Card
from heedful.text.pieces import Lexicon

MAX_DEVIATION = 1e-5
"""Largest difference of a vector's values alone and in any batch: the service's contract."""


@dataclass(frozen=True, slots=True)
class Int8Files:
    """All graphs of an encoder; the matrices of `keys` are bytes. `products` are in integers, `left` in float32."""

    files: dict[str, bytes]
    explain: bytes
    """explain.onnx with all its weights; empty for an encoder without one."""
    keys: frozenset[str]
    products: int
    left: int
    batch_deviation: float


def int8_files(
    encoder: bytes,
    explain: bytes | None,
    card: Card,
    vocab: Lexicon,
    weights: Mapping[str, str] = {},
) -> Int8Files:
    """Compute every product in integers whose input has the same bits alone and in a batch.

    `encoder` and `explain`, where there is one, hold all weights, as trained; those with a key in `weights` that stay
    floats are stored as float16. Raises ExportError if no product is left, or if the sentence vector, or that of the
    explanation, still depends on the batch.
    """
    traced = onnx.load_from_string(encoder)
    candidates = products(traced)
    chosen = candidates
    while True:  # a product in float32 may depend on the batch, and then so do its readers
        if not chosen:
            raise ExportError(
                f"{card.name}: no product reads the same bits in every batch: it stays float32"
            )
        keys = frozenset(product.key for product in chosen)
        half = {key: name for key, name in weights.items() if key not in keys}
        stored = store_half(deepcopy(traced), half)
        model = int8_graph(stored, keys)
        inputs = {product.input for product in chosen}
        compared = batch_invariance.compare(model, inputs, card, vocab)
        if not compared.dependent:
            break
        dropped = {product.key for product in chosen if product.input in compared.dependent}
        chosen = [product for product in chosen if product.key not in dropped]
    _check_deviation(card.name, "a sentence's vector", compared.deviation)
    composed_in_branch(model)

    content = serialize(float_graph(stored, keys))
    files = {ENCODER: content, ENCODER_INT8: externalize_weights(model, content, ENCODER)}
    left = len(candidates) - len(chosen)
    if explain is None:
        return Int8Files(files, b"", keys, len(chosen), left, compared.deviation)
    explained = store_half(onnx.load_from_string(explain), half)
    explain_content = serialize(float_graph(explained, keys))
    files |= {
        EXPLAIN: share_weights(explain_content, content),
        EXPLAIN_INT8: share_weights(serialize(int8_graph(explained, keys)), content, vectors=False),
    }
    deviation = batch_invariance.explanation_deviation(files, model, card, vocab)
    _check_deviation(card.name, "the explanation's vector", deviation)
    return Int8Files(files, explain_content, keys, len(chosen), left, compared.deviation)


def _check_deviation(name: str, what: str, deviation: float) -> None:
    if not deviation <= MAX_DEVIATION:  # written so that NaN fails as well
        raise ExportError(
            f"{name}: {what} in int8 differs by {deviation:.1e} between batches: "
            f"more than {MAX_DEVIATION:.0e}, it stays float32"
        )


def unmeasured(graphs: Int8Files) -> dict[str, Any]:
    """The card's field `int8` before the graphs are scored."""
    return {
        "products": graphs.products,
        "left": graphs.left,
        "dataset": "",
        "metric": "",
        "float32": 0.0,
        "int8": 0.0,
        "cosine": 0.0,
        "sentences": 0,
        "company": graphs.batch_deviation,
    }
