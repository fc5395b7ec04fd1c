"""A linear classifier over a bundle's frozen encoder -> a bundle, without torch."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heedful.export.bundle_writer import write
from heedful.export.errors import ParityError
from heedful.runtime.answers import normalise
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import HEAD, MEASURED, Card, DataCard, ScoreCard
from heedful.text.arrays import Doubles, Floats
from heedful.text.graph import open_session

OPSET = 20
TOLERANCE = 1e-4
"""Largest difference allowed between a logit of the graph and of numpy, as a share of the largest logit."""
CHECKED = 64
"""Random vectors on which the graph is compared with numpy."""


@dataclass(frozen=True, slots=True)
class LinearHead:
    """Logits `coefficients` v + `intercepts` of a sentence's vector v, scaled to length 1 first if `normalize`."""

    coefficients: Doubles  # (C, D)
    intercepts: Doubles  # (C,)
    labels: tuple[str, ...]
    normalize: bool = True

    @classmethod
    def binary(
        cls, coefficients: Doubles, intercept: float, labels: tuple[str, str], *, normalize: bool
    ) -> "LinearHead":
        """Two classes from the (D,) coefficients of one logit, which is that of the second."""
        rows = np.stack([np.zeros_like(coefficients), coefficients])
        return cls(rows, np.array([0.0, intercept]), labels, normalize)

    def logits(self, vectors: Floats) -> Doubles:
        """Vectors (N, D) -> logits (N, C)."""
        scaled = normalise(vectors) if self.normalize else vectors
        logits: Doubles = scaled.astype(np.float64) @ self.coefficients.T + self.intercepts
        return logits


@dataclass(frozen=True, slots=True)
class Provenance:
    """The facts of the head's training, for the card."""

    task: str
    data: DataCard
    command: str
    seed: int
    scores: tuple[ScoreCard, ...] = ()
    commit: str = ""
    teacher: str = ""


def write_bundle(
    base: Bundle,
    head: LinearHead,
    provenance: Provenance,
    out: Path,
    *,
    multi_label: bool = False,
    abstain: float | None = None,
) -> Card:
    """Write the bundle `out`: the graphs and words of `base`, whatever its kind, with a new head.

    `multi_label` and `abstain` are the card's. Raises, before anything is written, ParityError where the graph of the
    head differs from numpy, and BundleError if the result would not load.
    """
    card = base.card
    graph = head_graph(head, card.width)
    error = _check(graph, head, card.width)
    fields = card.fields()
    fields |= {
        "task": provenance.task,
        "kind": "classification",
        "labels": head.labels,
        "multi_label": multi_label,
        "abstain": abstain,
        "temperature": 1.0,  # the base's temperature belongs to the base's head
        "parity": {
            **fields["parity"],
            "max_abs_error": max(card.parity.max_abs_error, error),
            "cases": card.parity.cases + 1,
            "against": f"{card.parity.against}; the head: numpy",
        },
        "scores": [score.model_dump() for score in provenance.scores],
        "training": {
            "data": [*fields["training"]["data"], provenance.data.model_dump()],
            "vectors": f"the frozen encoder of {card.name} {card.version}",
            "seed": provenance.seed,
            "epochs": 0,
            "config": "a linear head",
            "command": provenance.command,
            "commit": provenance.commit,
            "teacher": provenance.teacher,
        },
    }
    # Measurements of the base do not hold for the new bundle.
    fields |= {"typical": None, "trust": None, "trained": None}
    shared = {name: content for name, content in base.files.items() if name not in MEASURED}
    files: dict[str, Path | bytes] = {**shared, HEAD: graph}
    return write(out, fields, files)


def head_graph(head: LinearHead, width: int) -> bytes:
    """head.onnx: sentence (B, W) -> logits (B, C), of its first D values. Zeros stay zero when they are scaled."""
    classes, dimension = head.coefficients.shape
    nodes = []
    value = "sentence"
    constants = {"coefficients": head.coefficients.T, "intercepts": head.intercepts}
    tensors = [
        numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name)
        for name, array in constants.items()
    ]
    if width > dimension:
        bounds = {"start": 0, "stop": dimension, "axis": 1}
        tensors += [numpy_helper.from_array(np.array([at]), name) for name, at in bounds.items()]
        nodes.append(helper.make_node("Slice", [value, *bounds], ["vector"]))
        value = "vector"
    if head.normalize:
        nodes.append(helper.make_node("LpNormalization", [value], ["scaled"], axis=-1, p=2))
        value = "scaled"
    nodes.append(helper.make_node("Gemm", [value, "coefficients", "intercepts"], ["logits"]))
    graph = helper.make_graph(
        nodes,
        "linear_head",
        [helper.make_tensor_value_info("sentence", TensorProto.FLOAT, ["B", width])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["B", classes])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString()
    return content


def _check(graph: bytes, head: LinearHead, width: int) -> float:
    """The largest difference of the graph's logits from numpy's. Raises ParityError."""
    vectors = np.random.default_rng(0).normal(size=(CHECKED, width)).astype(np.float32)
    expected = head.logits(vectors[:, : head.coefficients.shape[1]])
    (logits,) = open_session(graph).run(None, {"sentence": vectors})
    error = float(np.abs(logits - expected).max())
    if not error <= TOLERANCE * max(1.0, float(np.abs(expected).max())):  # NaN fails as well
        raise ParityError(f"the graph of the head is {error:.1e} away from numpy")
    return error
