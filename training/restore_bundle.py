"""A bundle's folder -> the model in torch with the weights of its graphs, to be trained again."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from google.protobuf.message import DecodeError
from torch import Tensor

from heedful.text import composition
from heedful.text.batch import Batch, Sentence, collate
from heedful.text.graph import open_session
from heedful.text.kinds import HEAD_INPUTS, Kind
from heedful.text.vocab import Vocab
from heedful.training import checkpoint, stored_weights
from heedful.training.config import RunConfig, validate
from heedful.training.errors import RunDamaged, RunMissing
from heedful.training.model import TrainingModel, make_model
from heedful.training.restore import Run

CARD, ENCODER, HEAD = "card.json", "encoder.onnx", "head.onnx"
TOLERANCE = 1e-4
"""Largest difference between torch and the graph, relative to the largest value if that is above 1."""
LENGTHS = (1, 2, 7, 20)
COMPOSED_NAMES = {
    "embedding.table.weight": "embedding.weight",
    "embedding.features.weight": "embedding.composed.words.features.weight",
}
"""Parameters of composed words -> their names in a graph that got composed words after its export."""


def is_bundle(folder: Path) -> bool:
    """Whether the folder holds a bundle, not a run."""
    return (folder / CARD).is_file()


def bundle_labels(folder: Path) -> tuple[str, ...]:
    """The labels on a bundle's card."""
    return tuple(json.loads((folder / CARD).read_bytes())["labels"])


def restore_bundle(folder: Path) -> Run:
    """The model of a bundle over words, equal to encoder.onnx to TOLERANCE.

    A linear head (`heedful fit`) is not restored: the record then has no labels, and the head is new. Raises RunMissing
    for a bundle that reads word pieces or counts words, whose weights are not all in its graphs, and RunDamaged.
    """
    try:
        card = json.loads((folder / CARD).read_bytes())
        encoder = onnx.load(folder / ENCODER)
        head = onnx.load(folder / HEAD) if (folder / HEAD).is_file() else None
        vocab = Vocab.read((folder / checkpoint.VOCAB).read_bytes(), card["composed"])
    except (OSError, ValueError, DecodeError) as error:
        raise RunDamaged(f"{folder} cannot be read: {error}: copy the bundle again") from error
    names = {tensor.name for tensor in encoder.graph.initializer}
    if any(name.startswith("bag_") for name in names):
        raise RunMissing(f"{folder} counts words, which cannot be trained: name its base bundle")
    head_names = {tensor.name for tensor in head.graph.initializer} if head else set()
    linear = "coefficients" in head_names
    kind: Kind = "embedding" if "projection.bias" in names else card["kind"]
    config = _config(card, None if linear else head, folder)
    model = make_model(
        config, kind, len(card["labels"]), torch.zeros(len(vocab), config.words.dim)
    ).eval()
    try:
        _load(encoder, model, config, len(vocab))
        if head is not None and not linear:
            _load_head(head, model, HEAD_INPUTS[kind])
    except ValueError as error:
        raise RunDamaged(f"{folder}: {ENCODER} is not of the model in {CARD}: {error}") from error
    record = {
        "kind": card["kind"],
        "labels": [] if linear else card["labels"],
        "data": card["training"]["data"],
        "config": config.model_dump(mode="json"),
    }
    return Run(config, record, vocab, model)


@torch.no_grad()
def _load(encoder: onnx.ModelProto, model: TrainingModel, config: RunConfig, words: int) -> None:
    """Load the encoder's weights. Raises ValueError where torch then differs from the graph."""
    sentence = model.sentence
    batch = _batch(words, config.words.subword_rows)
    feeds = batch.feeds(("ids", "lengths", *sentence.inputs), config.alpha)
    tensors = {name: torch.as_tensor(value) for name, value in feeds.items()}
    stored = stored_weights.arrays(encoder.graph)
    names = {name: other for name, other in COMPOSED_NAMES.items() if other in stored}
    stored_weights.load(encoder.graph, sentence, lambda: sentence(**tensors), names)
    _compare(encoder, feeds, sentence(**tensors))


@torch.no_grad()
def _load_head(head: onnx.ModelProto, model: TrainingModel, inputs: Sequence[str]) -> None:
    """Load the head's weights. Raises ValueError where torch then differs from the graph."""
    sides = torch.randn(
        len(inputs), 3, model.sentence.dim, generator=torch.Generator().manual_seed(0)
    )
    stored_weights.load(head.graph, model.head, lambda: model.head(*sides), {})
    _compare(head, dict(zip(inputs, sides.numpy(), strict=True)), model.head(*sides))


def _compare(graph: onnx.ModelProto, feeds: Mapping[str, Any], output: Tensor) -> None:
    """Raise ValueError where torch's `output` differs from the graph's by more than TOLERANCE."""
    (expected,) = open_session(graph.SerializeToString(), optimize=False).run(None, dict(feeds))
    size = max(1.0, float(np.abs(expected).max()))
    difference = float(np.abs(output.numpy() - expected).max()) / size
    if not difference <= TOLERANCE:  # written so that NaN fails as well
        raise ValueError(f"torch is {difference:.1e} away from the graph")


def _batch(words: int, composed: int) -> Batch:
    """Sentences of random words, some of them composed of random features."""
    rng = np.random.default_rng(0)
    sentences = []
    for length in LENGTHS:
        ids, heads = rng.integers(1, words, length), np.maximum(np.arange(length) - 1, 0)
        features = None
        if composed:
            ids[0] = -1
            features = rng.integers(0, composed, (1, composition.FEATURES))
        sentences.append(Sentence(ids, heads, features=features))
    return collate(sentences)


def _config(card: dict[str, Any], head: onnx.ModelProto | None, folder: Path) -> RunConfig:
    """The configuration of the bundle's run; from an older card, the fields that decide the model's shape."""
    fields = card["training"].get("settings")
    if not fields:
        keywords = {**card["encoder"]["config"]}
        dim = keywords.pop("dim")
        keywords.pop("max_tokens", None)
        fields = {
            "task": card["task"],
            "encoder": {"name": card["encoder"]["name"], "config": keywords},
            "words": {"dim": dim},
            "alpha": card["alpha"] or 1.0,
            "max_tokens": card["max_tokens"],
            "licence": card["licence"],
            "head": {"hidden": _hidden(head), "dropout": 0.0},
        }
    if fields.get("transformer"):
        raise RunMissing(f"{folder} reads word pieces: name the run that it was exported from")
    fields = fields | {"words": {**fields["words"], "subword_rows": card["composed"]}}
    return validate(fields, folder / CARD)


def _hidden(head: onnx.ModelProto | None) -> int:
    """The size of the first layer, from its bias."""
    if head is None:
        return 1
    vectors = [tensor for tensor in head.graph.initializer if len(tensor.dims) == 1]
    sizes = {tensor.name: int(tensor.dims[0]) for tensor in vectors}
    return next(sizes[node.input[2]] for node in head.graph.node if node.op_type == "Gemm")
