"""Add int8 graphs to a bundle; their weights stay in encoder.onnx, once."""

from dataclasses import dataclass

import onnx

from heedful.export import batch_invariance
from heedful.export.composed_branch import composed_in_branch
from heedful.export.convolutions import as_products
from heedful.export.errors import ExportError
from heedful.export.int8 import float_graph, int8_graph, products
from heedful.export.weight_sharing import (
    externalize_weights,
    restore_weights,
    serialize,
    share_weights,
)
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8

MAX_DEVIATION = 1e-5
"""Between a vector's values alone and in any batch: the service's contract."""


@dataclass(frozen=True, slots=True)
class Int8Files:
    """The bundle's `files` that change; `products` in integers, `left` in float32."""

    files: dict[str, bytes]
    products: int
    left: int
    batch_deviation: float


def int8_files(bundle: Bundle) -> Int8Files:
    """Compute every product in integers whose input has the same bits alone and in a batch.

    Of a bundle that has int8 graphs, those of the matrices that are stored as bytes: its weights stay as they are.
    Raises ExportError if there is none, or if the sentence vector, or the explanation's, still
    depends on the batch.
    """
    again = ENCODER_INT8 in bundle.files
    encoder = as_products(onnx.load_from_string(bundle.files[ENCODER]))
    every = products(encoder)
    taken = [product for product in every if product.stored or not again]
    while True:  # what stays in float32 may make its readers depend on the batch
        if not taken:
            raise ExportError(
                f"{bundle.card.name}: no product reads the same bits in every batch: it stays float32"
            )
        keys = {product.key for product in taken}
        model = int8_graph(encoder, keys)
        found = batch_invariance.compare(
            model, {product.read for product in taken}, bundle.card, bundle.vocab
        )
        if not found.dependent:
            break
        dropped = {product.key for product in taken if product.read in found.dependent}
        taken = [product for product in taken if product.key not in dropped]
    _check_deviation(bundle, "a sentence's vector", found.deviation)
    composed_in_branch(model)

    weights = bundle.files[ENCODER] if again else serialize(float_graph(encoder, keys))
    files = {ENCODER: weights, ENCODER_INT8: externalize_weights(model, weights, ENCODER)}
    if EXPLAIN in bundle.files:
        explain = as_products(restore_weights(bundle.files[EXPLAIN], bundle.files[ENCODER]))
        files[EXPLAIN] = bundle.files[EXPLAIN]
        if not again:
            files[EXPLAIN] = share_weights(serialize(float_graph(explain, keys)), weights)
        int8 = serialize(int8_graph(explain, keys))
        files[EXPLAIN_INT8] = share_weights(int8, weights, vectors=False)
        deviation = batch_invariance.explanation_deviation(files, model, bundle.card, bundle.vocab)
        _check_deviation(bundle, "the explanation's vector", deviation)
    return Int8Files(files, len(taken), len(every) - len(taken), found.deviation)


def float_files(bundle: Bundle) -> dict[str, bytes]:
    """The bundle's files without its int8 graphs."""
    int8 = (ENCODER_INT8, EXPLAIN_INT8)
    return {name: content for name, content in bundle.model_files.items() if name not in int8}


def _check_deviation(bundle: Bundle, what: str, deviation: float) -> None:
    if not deviation <= MAX_DEVIATION:  # written so that NaN fails as well
        raise ExportError(
            f"{bundle.card.name}: {what} in int8 differs by {deviation:.1e} between batches: "
            f"more than {MAX_DEVIATION:.0e}, it stays float32"
        )
