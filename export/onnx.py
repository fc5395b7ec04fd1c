"""torch modules -> ONNX graphs with a free batch size and a free length."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import torch
from torch import Tensor, nn

from export.quantize import store_half
from models.sentence import SentenceEncoder

OPSET = 20


def encoder_graph(model: SentenceEncoder) -> bytes:
    """encoder.onnx: ids (B, S), lengths (B,) and what the encoder reads besides -> embedding (B, D)."""
    B, L = 3, 5  # any but 0 and 1, which the exporter would take for constants
    S, width = (9, "S") if "pieces" in model.inputs else (L, "L")
    shapes = {
        "ids": {0: "B", 1: width},
        "lengths": {0: "B"},
        "heads": {0: "B", 1: "L"},
        "alpha": {},
        "pieces": {0: "B", 1: "L"},
    }
    example = {
        "ids": torch.ones(B, S, dtype=torch.long),
        "lengths": torch.tensor([L, 2, 1]),
        "heads": torch.arange(L).repeat(B, 1),
        "alpha": torch.tensor(1.0),
        "pieces": torch.ones(B, L, dtype=torch.long),
    }
    inputs = ("ids", "lengths", *model.inputs)
    return _graph(
        model,
        {name: example[name] for name in inputs},
        {name: shapes[name] for name in inputs},
        "embedding",
    )


def head_graph(head: nn.Module, dimension: int, inputs: tuple[str, ...]) -> bytes:
    """head.onnx: `inputs`, each a sentence vector (B, dimension) -> logits (B, C)."""
    example = {name: torch.ones(3, dimension) for name in inputs}
    return _graph(head, example, {name: {0: "B"} for name in inputs}, "logits")


def _graph(
    module: nn.Module,
    example: dict[str, Tensor],
    shapes: dict[str, dict[int, str]],
    output: str,
) -> bytes:
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module.eval(),
            kwargs=example,
            dynamo=True,
            opset_version=OPSET,
            dynamic_shapes=shapes,
            input_names=list(example),
            output_names=[output],
            verbose=False,
        )
    assert program is not None  # with dynamo=True it never is
    for node in program.model.graph:  # the exporter lets an inner value have the output's name
        for value in node.outputs:
            if value.name == output and not value.is_graph_output():
                value.name = f"{output}_inner"
    model = program.model_proto
    _strip(model)
    store_half(model)
    onnx.checker.check_model(model, full_check=True)
    serialised: bytes = model.SerializeToString(deterministic=True)
    return serialised


def _strip(model: onnx.ModelProto) -> None:
    """Leave out what the exporter notes down of this machine: stack traces with paths."""
    for part in (model, *model.functions):
        del part.metadata_props[:]
    _strip_graph(model.graph)
    for function in model.functions:
        for entry in (*function.node, *function.value_info):
            del entry.metadata_props[:]


def _strip_graph(graph: onnx.GraphProto) -> None:
    """The same for a graph and for the bodies of its loops."""
    del graph.metadata_props[:]
    for values in (graph.node, graph.value_info, graph.input, graph.output, graph.initializer):
        for value in values:
            del value.metadata_props[:]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _strip_graph(attribute.g)


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter warns of its own insides and of optional packages, never of the model."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
