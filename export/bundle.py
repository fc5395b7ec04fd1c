"""Export a trained model as a bundle: round the weights, export, compare, and only then write."""

import copy
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from heedful.export.bundle_writer import write
from heedful.export.errors import ExportError
from heedful.export.onnx import encoder_graph, explain_graph, head_graph
from heedful.export.parity import TOLERANCE, Parity, ParityModel, check
from heedful.export.weight_sharing import share_weights
from heedful.export.weight_storage import Storage, round_weights
from heedful.export.word_scale import scalable
from heedful.models.registry import ENCODERS
from heedful.models.sentence import SentenceEncoder
from heedful.runtime.bundles.card import (
    ENCODER,
    EXPLAIN,
    HEAD,
    TOKENIZER,
    VOCAB,
    Card,
    ParserCard,
    ScoreCard,
    TrainingCard,
)
from heedful.text.kinds import HEAD_INPUTS, Kind
from heedful.text.pieces import Lexicon, Pieces

Module = TypeVar("Module", bound=nn.Module)

STORED: dict[Storage, str] = {
    "normal": "matrices float16, word table int8",
    "small": "matrices int8, word table int4",
}


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model and what its card will say about it."""

    encoder: str  # its name in models.registry
    config: Mapping[str, bool | int | float | str | None]  # and its keywords
    model: SentenceEncoder
    head: nn.Module | None
    vocab: Lexicon
    task: str
    kind: Kind
    labels: tuple[str, ...]
    max_tokens: int
    alpha: float
    parser: ParserCard
    scores: tuple[ScoreCard, ...]
    training: TrainingCard
    licence: str
    temperature: float | None = None  # of its probabilities; None if it has not been fitted


def export_bundle(trained: TrainedModel, out: Path, storage: Storage = "normal") -> Card:
    """Write the bundle `out`, replacing an older one; return its card.

    Raises ExportError (including ParityError) before anything is written, and
    runtime.errors.BundleError if the runtime could not load the result.
    """
    inputs = HEAD_INPUTS[trained.kind]
    if (trained.head is not None) != bool(inputs):
        raise ExportError(f"a model of kind {trained.kind} has {'a' if inputs else 'no'} head")
    exact = ParityModel(
        _evaluating(trained.model), trained.head and _evaluating(trained.head), inputs
    )
    rounded = copy.deepcopy(exact)
    try:
        round_weights(rounded.encoder, storage)
        if rounded.head is not None:
            round_weights(rounded.head, storage)
    except ValueError as error:
        raise ExportError(str(error)) from error

    graphs = {
        "encoder": encoder_graph(rounded.encoder),
        "explain": scalable(explain_graph(rounded.encoder)),
    }
    if rounded.head is not None:
        graphs["head"] = head_graph(rounded.head, trained.model.dim, inputs)
    vocab = trained.vocab
    parity = check(
        graphs, rounded, exact, len(vocab), trained.max_tokens, vocab.limit, vocab.composed
    )

    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / (TOKENIZER if isinstance(vocab, Pieces) else VOCAB)
        vocab.save(file)
        files: dict[str, Path | bytes] = {
            ENCODER: graphs["encoder"],
            EXPLAIN: share_weights(graphs["explain"], graphs["encoder"]),
            file.name: file,
        }
        if "head" in graphs:
            files[HEAD] = graphs["head"]
        return write(out, _card(trained, parity, storage), files)


def _card(trained: TrainedModel, parity: Parity, storage: Storage) -> dict[str, Any]:
    """The card's fields that do not follow from the files."""
    encoder = trained.model.encoder
    entry = ENCODERS[trained.encoder]
    return {
        "task": trained.task,
        "kind": trained.kind,
        "encoder": {
            "name": trained.encoder,
            "config": dict(trained.config),
            "parameters": sum(parameter.numel() for parameter in encoder.parameters()),
            "paper": entry.paper,
        },
        "dimension": trained.model.dim - encoder.head_features,
        "head_features": encoder.head_features,
        "labels": trained.labels,
        "max_tokens": trained.max_tokens,
        "tree": "heads" in encoder.inputs,
        "cost": entry.cost,
        "composed": trained.vocab.composed,
        "alpha": trained.alpha if "alpha" in encoder.inputs else None,
        "temperature": 1.0 if trained.temperature is None else trained.temperature,
        "parser": trained.parser,
        "parity": {
            "max_abs_error": parity.error,
            "tolerance": TOLERANCE,
            "cases": parity.cases,
            "against": f"torch with the weights as stored ({STORED[storage]}); "
            f"torch with the weights as trained is {parity.loss:.1e} away at most",
        },
        "scores": trained.scores,
        "training": trained.training,
        "licence": trained.licence,
    }


def _evaluating(module: Module) -> Module:
    """A copy in float32, on the CPU, without dropout."""
    return copy.deepcopy(module).cpu().float().eval()
