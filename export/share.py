"""explain.onnx without weights: it takes them as inputs, and says where in encoder.onnx they stand.

So a bundle holds its weights once, and a process too: the runtime feeds stretches of the file's
bytes. ONNX's external data would do it for the file, but ONNX Runtime then maps the bundle's file,
which a later copy over it would change, or reads it a second time.
"""

import json
import math

import onnx
from onnx import TensorProto, helper

LEAST = 64
"""Bytes from which a tensor is looked for."""


def share_weights(graph: bytes, encoder: bytes, *, vectors: bool = True) -> bytes:
    """`graph` with an input in the place of each tensor that stands in `encoder`, a graph as well.

    Without `vectors` those of one axis stay in the graph. ONNX Runtime computes some of what it knows to
    be constant otherwise, and a last bit is too much where `export.int8` rounds.

    A tensor is found by its bytes: the exporter makes names up anew. The metadata holds JSON:
    `weights`, for each such input the offset in `encoder`; `shared`, for each tensor of `encoder`
    that its session keeps as it is, the input of the same bytes. That is the word table: matrices
    are float16, and become float32 when the session is opened.
    """
    model = onnx.load_from_string(graph)
    kept = {
        tensor.raw_data: tensor.name
        for tensor in onnx.load_from_string(encoder).graph.initializer
        if len(tensor.dims) > 1 and tensor.data_type != TensorProto.FLOAT16
    }
    own, weights, shared = [], {}, {}
    for tensor in model.graph.initializer:
        content = tensor.raw_data
        small = len(content) < LEAST or (len(tensor.dims) < 2 and not vectors)
        if small or (offset := encoder.find(content)) < 0:
            own.append(tensor)
            continue
        weights[tensor.name] = offset
        if content in kept:
            shared[kept[content]] = tensor.name
        model.graph.input.append(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
    del model.graph.initializer[:]
    model.graph.initializer.extend(own)
    for key, value in (("weights", weights), ("shared", shared)):
        model.metadata_props.add(key=key, value=json.dumps(value))
    onnx.checker.check_model(model, full_check=True)
    serialised: bytes = model.SerializeToString(deterministic=True)
    return serialised


def whole(graph: bytes, encoder: bytes) -> onnx.ModelProto:
    """What `share_weights` was given: its inputs that are weights are tensors of the graph again."""
    model = onnx.load_from_string(graph)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    offsets = json.loads(metadata.pop("weights"))
    del metadata["shared"]
    inputs = []
    for value in model.graph.input:
        if value.name not in offsets:
            inputs.append(value)
            continue
        kind = value.type.tensor_type.elem_type
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        size = math.prod(dims) * helper.tensor_dtype_to_np_dtype(kind).itemsize
        start = offsets[value.name]
        model.graph.initializer.append(
            helper.make_tensor(value.name, kind, dims, encoder[start : start + size], raw=True)
        )
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    helper.set_model_props(model, metadata)
    return model


def outside(model: onnx.ModelProto, weights: bytes, file: str) -> bytes:
    """The graph without the tensors that stand in the file of the bytes `weights`, which it names instead."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        content = tensor.raw_data
        if len(content) >= LEAST and (offset := weights.find(content)) >= 0:
            onnx.external_data_helper.set_external_data(tensor, file, offset, len(content))
            tensor.ClearField("raw_data")
    serialised: bytes = made.SerializeToString(deterministic=True)
    return serialised


def inside(graph: bytes, weights: bytes) -> onnx.ModelProto:
    """What `outside` was given: the graph with its tensors."""
    model = onnx.load_from_string(graph)
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            where = onnx.external_data_helper.ExternalDataInfo(tensor)
            assert where.offset is not None  # `outside` gives both
            assert where.length is not None
            tensor.raw_data = weights[where.offset : where.offset + where.length]
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]
    return model
