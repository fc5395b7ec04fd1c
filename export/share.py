"""A graph that reads its weights from another graph's file, as ONNX's external data.

ONNX Runtime maps such a file into memory: the weights are the file's own pages.
"""

import onnx
from onnx import TensorProto

LEAST = 64
"""Bytes from which a tensor is looked for."""


def share_weights(graph: bytes, other: bytes, file: str) -> bytes:
    """`graph` without each tensor that stands in `other`, the content of `file` beside it.

    A tensor is found by its bytes, not by its name, which the exporter makes up anew.
    """
    model = onnx.load_from_string(graph)
    for tensor in model.graph.initializer:
        content = tensor.raw_data
        if len(content) < LEAST or (offset := other.find(content)) < 0:
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": file, "offset": offset, "length": len(content)}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
    shared: bytes = model.SerializeToString(deterministic=True)
    return shared
