"""Export torch modules as ONNX graphs with a dynamic batch size and length."""

import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import onnx
import torch
from google.protobuf.message import Message
from onnxscript import optimizer
from torch import Tensor, nn

from heedful.export.weight_sharing import serialize
from heedful.models.sentence import Explanation, SentenceEncoder
from heedful.runtime.explain.graph import SCALE
from heedful.text import composition

OPSET = 20


def encoder_graph(model: SentenceEncoder) -> bytes:
    """encoder.onnx: ids (B, S), lengths (B,) and the encoder's other inputs -> embedding (B, D)."""
    inputs = ("ids", "lengths", *model.inputs)
    return graph(model, *_example(inputs), ["embedding"])


def explain_graph(model: SentenceEncoder) -> bytes:
    """explain.onnx with all its weights: the inputs of encoder.onnx and a () boolean per prior.

    It outputs the embedding (B, D) and the parts of an Explanation that the encoder has: states
    (B, L, S), pooling (B, P, L), maps (B, M, L or 1, L), gate (B, G, L). The metadata list the names
    of the stacked ones as JSON, under the output's name.

    The optional input `scale` (B, L) multiplies the word vectors, along the path of integrated gradients; by default it
    is 1. A graph that reads word pieces has none: a transformer mixes them before they are words.
    """
    scale = () if "pieces" in model.inputs else (SCALE,)
    example, shapes = _example(("ids", "lengths", *model.inputs, *scale, *model.encoder.priors))
    with torch.no_grad():
        explanation = model.eval().explain(**example)
    names = {kind: list(tensors) for kind, tensors in _named(explanation).items()}
    content = graph(_Explained(model), example, shapes, ["embedding", "states", *names], names)
    return _with_default_scale(content) if scale else content


def _with_default_scale(content: bytes) -> bytes:
    """The graph with the default 1 of its input `scale`."""
    model = onnx.load_from_string(content)
    (place,) = (i for i, value in enumerate(model.graph.input) if value.name == SCALE)
    any_size = onnx.helper.make_tensor_value_info(SCALE, onnx.TensorProto.FLOAT, ["SB", "SL"])
    model.graph.input[place].CopyFrom(any_size)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 1), np.float32), SCALE))
    return serialize(model)


class _Explained(nn.Module):
    """A module whose outputs are the parts of the explanation."""

    def __init__(self, model: SentenceEncoder) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        ids: Tensor,
        lengths: Tensor,
        heads: Tensor | None = None,
        alpha: Tensor | None = None,
        pieces: Tensor | None = None,
        features: Tensor | None = None,
        scale: Tensor | None = None,
        direction: Tensor | None = None,
        word: Tensor | None = None,
        dependency: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        priors = {"direction": direction, "word": word, "dependency": dependency}
        switches = {name: switch for name, switch in priors.items() if switch is not None}
        inputs = (ids, lengths, heads, alpha, pieces, features, scale)
        explanation = self.model.explain(*inputs, **switches)
        stacked = (torch.stack(list(kind.values()), 1) for kind in _named(explanation).values())
        return explanation.sentence, explanation.states, *stacked


def _named(explanation: Explanation) -> dict[str, Mapping[str, Tensor]]:
    """The parts of an explanation that have named tensors."""
    parts = ("pooling", "maps", "gate")
    return {part: tensors for part in parts if (tensors := getattr(explanation, part))}


def _example(inputs: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, dict[int, str]]]:
    """Example inputs to trace with, and the dynamic axes of each."""
    B, L = 3, 5  # neither 0 nor 1, which the exporter would make constant
    S, width = (9, "S") if "pieces" in inputs else (L, "L")
    per_word = {0: "B", 1: "L"}
    shapes = {
        "ids": {0: "B", 1: width},
        "lengths": {0: "B"},
        "heads": per_word,
        "pieces": per_word,
        SCALE: per_word,
        "features": {0: "K"},
    }
    example = {
        "ids": torch.ones(B, S, dtype=torch.long),
        "lengths": torch.tensor([L, 2, 1]),
        "heads": torch.arange(L).repeat(B, 1),
        "alpha": torch.tensor(1.0),
        "pieces": torch.ones(B, L, dtype=torch.long),
        SCALE: torch.ones(B, L),
        "features": torch.ones(2, composition.FEATURES, dtype=torch.long),
        # one tensor each: the exporter merges inputs that are the same tensor
        **{prior: torch.tensor(True) for prior in ("direction", "word", "dependency")},
    }
    return {name: example[name] for name in inputs}, {name: shapes.get(name, {}) for name in inputs}


def head_graph(head: nn.Module, dimension: int, inputs: tuple[str, ...]) -> bytes:
    """head.onnx: `inputs`, each a sentence vector (B, dimension) -> logits (B, C)."""
    example = {name: torch.ones(3, dimension) for name in inputs}
    return graph(head, example, {name: {0: "B"} for name in inputs}, ["logits"])


def graph(
    module: nn.Module,
    example: dict[str, Tensor],
    shapes: dict[str, dict[int, str]],
    outputs: list[str],
    metadata: Mapping[str, object] | None = None,
) -> bytes:
    """The ONNX graph of a module, traced on `example`, the tensors of its keywords.

    `shapes` name the dynamic axes of each input; `metadata` are stored as JSON.
    """
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module.eval(),
            kwargs=example,
            dynamo=True,
            opset_version=OPSET,
            dynamic_shapes=shapes,
            input_names=list(example),
            output_names=outputs,
            verbose=False,
        )
    assert program is not None  # with dynamo=True it never is
    optimizer.remove_unused_nodes(program.model)  # sessions warn about unused constants
    for node in program.model.graph:  # the exporter may give an inner value the output's name
        for value in node.outputs:
            if value.name in outputs and not value.is_graph_output():
                value.name = f"{value.name}_inner"
    model = program.model_proto
    _strip(model)
    onnx.helper.set_model_props(
        model, {key: json.dumps(value) for key, value in (metadata or {}).items()}
    )
    onnx.checker.check_model(model, full_check=True)
    return serialize(model)


def _strip(message: Message) -> None:
    """Remove the exporter's notes about this machine, such as stack traces with paths, at every depth."""
    for field, value in message.ListFields():
        if field.name == "metadata_props":
            message.ClearField(field.name)
        elif field.message_type is not None:
            for part in (value,) if isinstance(value, Message) else value:
                _strip(part)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter, whose warnings are about itself and optional packages, never about the model."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
