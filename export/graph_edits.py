"""The same edit in every graph of a bundle, whichever way each keeps its weights."""

from collections.abc import Callable, Mapping

import onnx

from heedful.export.weight_sharing import (
    externalize_weights,
    inline_weights,
    restore_weights,
    serialize,
    share_weights,
)
from heedful.runtime.bundle import ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8, Bundle


def edited(bundle: Bundle, edit: Callable[[onnx.ModelProto], onnx.ModelProto]) -> dict[str, bytes]:
    """The bundle's graph files after `edit`, which is given each graph with all its weights."""
    files, old = bundle.files, bundle.files[ENCODER]
    made = {ENCODER: serialize(edit(onnx.load_from_string(old)))}
    if ENCODER_INT8 in files:
        model = edit(inline_weights(files[ENCODER_INT8], old))
        made[ENCODER_INT8] = externalize_weights(model, made[ENCODER], ENCODER)
    for name, vectors in ((EXPLAIN, True), (EXPLAIN_INT8, False)):
        if name in files:
            model = edit(restore_weights(files[name], old))
            made[name] = share_weights(serialize(model), made[ENCODER], vectors=vectors)
    return made


def copied(node: onnx.NodeProto) -> onnx.NodeProto:
    """A copy that outlives the graph's list."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    return made


def renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A copy whose inputs and outputs are called as `names` says."""
    made = copied(node)
    made.input[:] = [names.get(name, name) for name in node.input]
    made.output[:] = [names.get(name, name) for name in node.output]
    return made
