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
    """encoder.onnx: ids (B, L), lengths (B,) and what the encoder reads besides -> embedding (B, D)."""
    B, L = 3, 5  # any but 0 and 1, which the exporter would take for constants
    shapes = {"ids": {0: "B", 1: "L"}, "lengths": {0: "B"}, "heads": {0: "B", 1: "L"}, "alpha": {}}
    example = {
        "ids": torch.ones(B, L, dtype=torch.long),
        "lengths": torch.tensor([L, 2, 1]),
        "heads": torch.arange(L).repeat(B, 1),
        "alpha": torch.tensor(1.0),
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
    with _quiet():
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
    for part in (model, model.graph, *model.graph.node, *model.graph.value_info):
        del part.metadata_props[:]
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        del value.metadata_props[:]


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
