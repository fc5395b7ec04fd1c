"""A bundle -> the same with int8 graphs, whose weights stand in encoder.onnx, once."""

from dataclasses import dataclass

import onnx

from heedful.export import steady
from heedful.export.errors import ExportError
from heedful.export.int8 import float_graph, int8_graph, products
from heedful.export.share import outside, share_weights, whole
from heedful.runtime.bundle import ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8, Bundle

COMPANY = 1e-5
"""Most that a vector's value may differ by what it is batched with: the service's contract."""


@dataclass(frozen=True, slots=True)
class Int8Files:
    """`files` of the bundle whose graphs are new; `products` in integers, `left` in float32."""

    files: dict[str, bytes]
    products: int
    left: int
    company: float


def int8_files(bundle: Bundle) -> Int8Files:
    """Take every product that reads the same bits alone and in a batch.

    Raises ExportError where there is none, where the vector depends on its company all the same, or
    where the explanation's differs.
    """
    encoder = onnx.load_from_string(bundle.files[ENCODER])
    every = products(encoder)
    taken = every
    while True:  # what is left in float32 may make unsteady what reads it
        if not taken:
            raise ExportError(
                f"{bundle.card.name}: no product reads the same bits in every batch: it stays float32"
            )
        keys = {product.key for product in taken}
        model = int8_graph(encoder, keys)
        company = steady.compare(
            model, {product.read for product in taken}, bundle.card, bundle.vocab
        )
        if not company.unsteady:
            break
        dropped = {product.key for product in taken if product.read in company.unsteady}
        taken = [product for product in taken if product.key not in dropped]
    _hold(bundle, "a sentence's vector", company.difference)

    weights: bytes = float_graph(encoder, keys).SerializeToString(deterministic=True)
    files = {ENCODER: weights, ENCODER_INT8: outside(model, weights, ENCODER)}
    if EXPLAIN in bundle.files:
        explain = whole(bundle.files[EXPLAIN], bundle.files[ENCODER])
        files[EXPLAIN] = share_weights(_bytes(float_graph(explain, keys)), weights)
        files[EXPLAIN_INT8] = share_weights(
            _bytes(int8_graph(explain, keys)), weights, vectors=False
        )
        _hold(
            bundle,
            "the explanation's vector",
            steady.explained(files, model, bundle.card, bundle.vocab),
        )
    return Int8Files(files, len(taken), len(every) - len(taken), company.difference)


def _hold(bundle: Bundle, what: str, difference: float) -> None:
    if not difference <= COMPANY:  # so written, NaN fails as well
        raise ExportError(
            f"{bundle.card.name}: {what} in int8 differs by {difference:.1e} from itself in other "
            f"company: more than {COMPANY:.0e}, it stays float32"
        )


def _bytes(model: onnx.ModelProto) -> bytes:
    serialised: bytes = model.SerializeToString(deterministic=True)
    return serialised
