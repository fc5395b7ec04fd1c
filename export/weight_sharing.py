"""explain.onnx without weights: it takes them as inputs, and its metadata locate them in encoder.onnx.

A bundle, and a process, then hold each weight once: the runtime feeds slices of the file's bytes. With ONNX's external
data ONNX Runtime would map the file, so that a later copy over it would change a running model, or read it twice.
"""

import copy
import json
import math

import onnx
from onnx import TensorProto, helper

MIN_BYTES = 64
"""Smaller tensors stay in the graph."""


def share_weights(graph: bytes, encoder: bytes, *, vectors: bool = True) -> bytes:
    """Replace each tensor of `graph` that the graph `encoder` holds too by an input.

    With `vectors=False`, keep 1-D tensors inline: an int8 graph depends on how ONNX Runtime folds them as constants, to
    the last bit.

    Tensors are matched by their bytes, because the exporter invents names. The metadata hold JSON: `weights` maps each
    such input to its offset in `encoder`; `shared` maps each tensor that the encoder's session uses unchanged to the
    input of the same bytes. That is the word table: matrices are float16, and become float32 when the session opens.
    """
    model = onnx.load_from_string(graph)
    encoder_tensors = {
        tensor.raw_data: tensor.name
        for tensor in onnx.load_from_string(encoder).graph.initializer
        if len(tensor.dims) > 1 and tensor.data_type != TensorProto.FLOAT16
    }
    inline, weights, shared = [], {}, {}
    for tensor in model.graph.initializer:
        content = tensor.raw_data
        small = len(content) < MIN_BYTES or (len(tensor.dims) < 2 and not vectors)
        if small or (offset := encoder.find(content)) < 0:
            inline.append(tensor)
            continue
        weights[tensor.name] = offset
        if content in encoder_tensors:
            shared[encoder_tensors[content]] = tensor.name
        model.graph.input.append(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
    del model.graph.initializer[:]
    model.graph.initializer.extend(inline)
    for key, value in (("weights", weights), ("shared", shared)):
        model.metadata_props.add(key=key, value=json.dumps(value))
    onnx.checker.check_model(model, full_check=True)
    return serialize(model)


def restore_weights(graph: bytes, encoder: bytes) -> onnx.ModelProto:
    """Undo `share_weights`: the inputs that are weights become tensors of the graph again."""
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


def externalize_weights(model: onnx.ModelProto, weights: bytes, file: str) -> bytes:
    """Replace the tensors that `weights`, the content of `file`, holds too by references into that file."""
    referring = copy.deepcopy(model)
    for tensor in referring.graph.initializer:
        content = tensor.raw_data
        if len(content) >= MIN_BYTES and (offset := weights.find(content)) >= 0:
            onnx.external_data_helper.set_external_data(tensor, file, offset, len(content))
            tensor.ClearField("raw_data")
    return serialize(referring)


def inline_weights(graph: bytes, weights: bytes) -> onnx.ModelProto:
    """Undo `externalize_weights`."""
    model = onnx.load_from_string(graph)
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            info = onnx.external_data_helper.ExternalDataInfo(tensor)
            assert info.offset is not None  # `externalize_weights` sets both
            assert info.length is not None
            tensor.raw_data = weights[info.offset : info.offset + info.length]
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]
    return model


def serialize(model: onnx.ModelProto) -> bytes:
    """The model's bytes, the same for the same model."""
    content: bytes = model.SerializeToString(deterministic=True)
    return content
