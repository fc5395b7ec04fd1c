"""A trained model -> a bundle: trace, round the weights once, compare with torch, then write."""

import copy
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import onnx
from torch import nn

from heedful.export.bundle_writer import card_of, write
from heedful.export.errors import ExportError
from heedful.export.int8 import products
from heedful.export.int8_files import int8_files, unmeasured
from heedful.export.onnx import encoder_graph, explain_graph, head_graph
from heedful.export.parity import TOLERANCE, ParityModel, check
from heedful.export.weight_sharing import serialize, share_weights
from heedful.export.weight_storage import (
    Storage,
    round_weights,
    store_half,
    store_tables,
    weight_keys,
)
from heedful.models.registry import ENCODERS
from heedful.models.sentence import SentenceEncoder
from heedful.runtime.bundles.bundle import Bundle
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
    "small": "matrices int8, large tables int4",
}


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model and the facts for its card."""

    encoder: str  # the encoder's name in models.registry
    config: Mapping[str, bool | int | float | str | None]  # and the encoder's keywords
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
    """Write the bundle `out` with float32 graphs only, in place of an older one; return its card.

    Raises ExportError (including ParityError) before anything is written, and
    runtime.errors.BundleError if the runtime could not load the result.
    """
    bundle = make_bundle(trained, out.name, storage)
    return write(out, bundle.card.fields(), bundle.files)


def make_bundle(
    trained: TrainedModel, name: str, storage: Storage = "normal", *, int8: bool = False
) -> Bundle:
    """The bundle of a trained model, not on disk yet; with `int8` its scores are measured later.

    Weights are rounded once, from the trained ones. Raises ExportError (including ParityError), BundleError.
    """
    inputs = HEAD_INPUTS[trained.kind]
    if (trained.head is not None) != bool(inputs):
        raise ExportError(f"a model of kind {trained.kind} has {'a' if inputs else 'no'} head")
    exact = ParityModel(
        _evaluating(trained.model), trained.head and _evaluating(trained.head), inputs
    )
    try:
        return _make(trained, name, exact, storage, int8=int8)
    except ValueError as error:
        raise ExportError(str(error)) from error


def _make(
    trained: TrainedModel, name: str, exact: ParityModel, storage: Storage, *, int8: bool
) -> Bundle:
    """`make_bundle` from the trained model in torch. Raises ValueError for weights that cannot be stored."""
    linear = storage == "small" and not int8  # int8 graphs store their products' matrices as bytes
    traced = copy.deepcopy(exact)
    store_tables(traced.encoder, storage, linear=linear)
    encoder = encoder_graph(traced.encoder)
    explain = explain_graph(traced.encoder)
    weights = weight_keys(traced.encoder)
    vocab, lexicon = trained.vocab, _lexicon_file(trained.vocab)
    files, keys = dict(lexicon), frozenset[str]()
    if traced.head is not None:
        store_tables(traced.head, storage)
        head = onnx.load_from_string(head_graph(traced.head, trained.model.dim, exact.head_inputs))
        files[HEAD] = serialize(store_half(head, weight_keys(traced.head)))
    fields = _card(trained)
    # An encoder without matrices, such as an average of words, stays in floats.
    int8 = int8 and bool(products(onnx.load_from_string(encoder)))
    if int8:
        draft = card_of(name, fields, {**files, ENCODER: encoder})
        graphs = int8_files(encoder, explain, draft, vocab, weights)
        files |= graphs.files
        keys, explain = graphs.keys, graphs.explain
        fields["int8"] = unmeasured(graphs)
    else:
        files[ENCODER], explain = (
            serialize(store_half(onnx.load_from_string(graph), weights))
            for graph in (encoder, explain)
        )
        files[EXPLAIN] = share_weights(explain, files[ENCODER])
    rounded = copy.deepcopy(exact)
    round_weights(rounded.encoder, storage, keys, linear=linear)
    if rounded.head is not None:
        round_weights(rounded.head, storage)
    compared = {"encoder": files[ENCODER], "explain": explain}
    compared |= {"head": files[HEAD]} if HEAD in files else {}
    parity = check(
        compared, rounded, exact, len(vocab), trained.max_tokens, vocab.limit, vocab.composed
    )
    fields["parity"] = {
        "max_abs_error": parity.error,
        "tolerance": TOLERANCE,
        "cases": parity.cases,
        "against": f"torch with the weights as stored ({STORED[storage]}{', products int8' * int8}); "
        f"torch with the weights as trained is {parity.loss:.1e} away at most",
    }
    return Bundle(card_of(name, fields, files), files, vocab)


def _lexicon_file(vocab: Lexicon) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / (TOKENIZER if isinstance(vocab, Pieces) else VOCAB)
        vocab.save(file)
        return {file.name: file.read_bytes()}


def _card(trained: TrainedModel) -> dict[str, Any]:
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
        "parity": {"max_abs_error": 0.0, "tolerance": TOLERANCE, "cases": 0, "against": ""},
        "scores": trained.scores,
        "training": trained.training,
        "licence": trained.licence,
    }


def _evaluating(module: Module) -> Module:
    """A copy in float32, on the CPU, without dropout."""
    return copy.deepcopy(module).cpu().float().eval()
