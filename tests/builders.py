"""Real bundles and a real parser, made in a second or two without torch.

The encoder is an embedding lookup that sees the tree: each token adds `alpha` times its governor's
vector, then tanh, then the mean over the tokens. Of pieces, a token's vector is the mean of its pieces',
each with a vector of its place. The heads are one linear layer. Weights are
random, from a seed: the answers mean nothing, but they are right or wrong to the last digit.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import spacy
from onnx import TensorProto, helper, numpy_helper
from spacy.training import Example
from thinc.api import fix_random_seed
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from heedful.export.bundle_writer import write
from heedful.export.weight_sharing import externalize_weights, share_weights
from heedful.runtime.bundles.card import (
    ENCODER,
    ENCODER_INT8,
    EXPLAIN,
    EXPLAIN_INT8,
    HEAD,
    TOKENIZER,
    VOCAB,
    Card,
)
from heedful.runtime.explain.graph import SCALE
from heedful.text import composition
from heedful.text.arrays import Floats
from heedful.text.batch import Sentence
from heedful.text.kinds import Kind
from heedful.text.parse import fingerprint
from heedful.text.pieces import Pieces
from heedful.text.vocab import SPECIAL

WORDS = (
    *("a", "the", "two", "three", "kid", "kids", "dog", "man", "at"),
    *("ballgame", "wash", "their", "hands", "hand", "is", "not", "good", "bad"),
)
DIMENSION = 8
LABELS: dict[Kind, tuple[str, ...]] = {
    "nli": ("entailment", "neutral", "contradiction"),
    "classification": ("negative", "positive"),
    "relatedness": (),
    "embedding": (),
}
ALPHA = 1.5


@dataclass(frozen=True)
class BuiltParser:
    folder: Path
    name: str
    fingerprint: str


def build_parser(folder: Path) -> BuiltParser:
    """A spaCy pipeline of a tokenizer and a parser, trained for a few steps on two sentences."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.meta["name"] = "tiny"
    tok2vec = {
        "@architectures": "spacy.HashEmbedCNN.v2",
        "pretrained_vectors": None,
        "width": 16,
        "depth": 1,
        "embed_size": 64,
        "window_size": 1,
        "maxout_pieces": 2,
        "subword_features": False,
    }
    nlp.add_pipe("parser", config={"min_action_freq": 1, "model": {"tok2vec": tok2vec}})
    examples = [
        Example.from_dict(nlp.make_doc(text), {"heads": heads, "deps": deps})
        for text, heads, deps in (
            (
                "Two kids wash their hands",
                [1, 2, 2, 4, 2],
                ["nummod", "nsubj", "ROOT", "nmod:poss", "obj"],
            ),
            (
                "The dog is not good .",
                [1, 4, 4, 4, 4, 4],
                ["det", "nsubj", "cop", "advmod", "ROOT", "punct"],
            ),
        )
    ]
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for _ in range(20):
        nlp.update(examples, sgd=optimizer)
    nlp.to_disk(folder)
    return BuiltParser(folder, "en_tiny", fingerprint(folder))


def build_pieces(limit: int = 40) -> Pieces:
    """A tokenizer of WORDS without "ballgame" and "unheard", of letters and of their continuations."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", ",", "ball", "##game", *letters]
    pieces += [f"##{letter}" for letter in letters]
    pieces += [word for word in WORDS if word not in pieces and word != "ballgame"]
    ids = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(pieces[:4])
    return Pieces(tokenizer, limit)


def random_texts(count: int) -> list[str]:
    """One to eleven words each, of which "zebra" is not in WORDS."""
    rng = np.random.default_rng(0)
    words = ["kids", "dog", "wash", "bad", "hands", "the", "zebra"]
    return [" ".join(rng.choice(words, size=rng.integers(1, 12))) for _ in range(count)]


def word_table(words: Sequence[str] = WORDS, dimension: int = DIMENSION) -> Floats:
    """(V, D) vectors of the special tokens and of `words`."""
    shape = (len(SPECIAL) + len(words), dimension)
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def piece_tables(pieces: Pieces) -> tuple[Floats, Floats]:
    """Vectors of the pieces (V, D) and of their places (limit, D)."""
    rng = np.random.default_rng(3)
    sizes = (len(pieces), DIMENSION), (pieces.limit, DIMENSION)
    table, places = (rng.normal(size=size).astype(np.float32) for size in sizes)
    return table, places


def expected_embedding(
    sentence: Sentence, alpha: float = ALPHA, pieces: Pieces | None = None
) -> Floats:
    """(D,) what the built encoder must give, token by token."""
    if sentence.pieces is None or pieces is None:
        words = list(word_table()[sentence.ids])
    else:
        table, places = piece_tables(pieces)
        hidden = [table[id] + places[place] for place, id in enumerate(sentence.ids)][1:]
        words = []
        for count in sentence.pieces:
            words.append(np.mean(hidden[:count], axis=0))
            hidden = hidden[count:]
    rows = [
        np.tanh(words[i] + alpha * words[head]) for i, head in enumerate(sentence.heads.tolist())
    ]
    mean: Floats = np.mean(rows, axis=0, dtype=np.float32)
    return mean


def build_bundle(
    models: Path,
    parser: BuiltParser,
    *,
    name: str = "tiny-sst2",
    kind: Kind = "classification",
    labels: tuple[str, ...] | None = None,
    max_tokens: int = 16,
    tree: bool = True,
    pieces: Pieces | None = None,
    explain: bool = False,
    int8: bool = False,
    **card: Any,
) -> Card:
    """Write the bundle `models/name`, of words or of `pieces`; `card` replaces fields of its card.

    Its int8 graphs compute twice the vector, so that one sees which graph has answered.
    """
    labels = LABELS[kind] if labels is None else labels
    files: dict[str, Path | bytes] = {}
    if pieces is None:
        files[VOCAB] = "".join(f"{word}\n" for word in (*SPECIAL, *WORDS)).encode()
        table, places = word_table(), None
    else:
        files[TOKENIZER] = pieces.text.encode()
        table, places = piece_tables(pieces)
    encoder = encoder_graph(table, tree=tree, places=places, composed=card.get("composed", 0))
    files[ENCODER] = encoder
    if explain:
        files[EXPLAIN] = share_weights(explain_graph(table, tree=tree, places=places), encoder)
    if int8:
        files[ENCODER_INT8] = externalize_weights(_doubled(encoder), encoder, ENCODER)
        if explain:
            doubled = _doubled(explain_graph(table, tree=tree, places=places))
            files[EXPLAIN_INT8] = share_weights(doubled.SerializeToString(), encoder)
        card["int8"] = {
            **{"products": 1, "left": 0, "dataset": "toy", "metric": "accuracy"},
            **{"float32": 0.5, "int8": 0.5, "cosine": 1.0, "sentences": 2, "company": 0.0},
        }
    if kind != "embedding":
        files[HEAD] = head_graph(kind, DIMENSION, len(labels) or 5)
    fields: dict[str, Any] = {
        "task": name.rpartition("-")[2],
        "kind": kind,
        "encoder": {"name": "tiny", "config": {"dim": DIMENSION}, "parameters": 0, "paper": "none"},
        "dimension": DIMENSION,
        "labels": labels,
        "max_tokens": max_tokens,
        "tree": tree,
        "cost": "linear",
        "alpha": ALPHA if tree else None,
        "parser": {"name": parser.name, "fingerprint": parser.fingerprint},
        "parity": {"max_abs_error": 0.0, "tolerance": 1e-4, "cases": 1, "against": "numpy"},
        "scores": (
            {"dataset": "toy", "split": "test", "metric": "accuracy", "value": 0.5, "rows": 2},
        ),
        "training": {
            "data": ({"name": "toy", "rows": 2, "licence": "CC0-1.0", "note": "made up"},),
            "vectors": "random",
            "seed": 1,
            "epochs": 0,
            "config": "none",
            "command": "none",
            "commit": "none",
        },
        "licence": "Apache-2.0",
        **card,
    }
    return write(models / name, fields, files)


def build_models(models: Path) -> BuiltParser:
    """A folder to serve: `parser`, `tiny-nli`, `tiny-sst2` and `tiny-flat` (embedding, no tree).

    The first two can be explained.
    """
    parser = build_parser(models / "parser")
    build_bundle(models, parser, name="tiny-nli", kind="nli", explain=True)
    build_bundle(models, parser, name="tiny-sst2", kind="classification", explain=True)
    build_bundle(models, parser, name="tiny-flat", kind="embedding", tree=False)
    return parser


def encoder_graph(
    table: Floats,
    *,
    tree: bool,
    places: Floats | None = None,
    composed: int = 0,
) -> bytes:
    """encoder.onnx: mean over tokens of tanh(table[id] + alpha * table[id of the governor]).

    With `places` an id is a piece: a word is the mean of its pieces' table[id] + places[position]. With
    `composed` rows of features, an unlisted word is the sum of those of its features.
    """
    nodes, inputs, constants = _encoder_nodes(table, tree=tree, places=places)
    if composed:
        _compose(nodes, inputs, constants, (composed, table.shape[1]))
    outputs = [_value("embedding", TensorProto.FLOAT, "B", table.shape[1])]
    return _model(nodes, inputs, outputs, constants)


def explain_graph(
    table: Floats,
    *,
    tree: bool,
    places: Floats | None = None,
) -> bytes:
    """explain.onnx, whole: the same of sentences without padding, with one map, two poolings, a gate.

    The map is the softmax of the tokens' products, the first pooling that of their sums. The prior
    `dependency` is alpha. Word vectors of words can be scaled.
    """
    nodes, inputs, constants = _encoder_nodes(table, tree=tree, places=places)
    if places is None:
        constants[SCALE] = np.ones((1, 1), np.float32)
        inputs.append(_value(SCALE, TensorProto.FLOAT, "SB", "SL"))
        nodes[0].output[0] = "unscaled"
        nodes[1:1] = [
            helper.make_node("Unsqueeze", [SCALE, "last"], ["scale3"]),
            helper.make_node("Mul", ["unscaled", "scale3"], ["words"]),
        ]
    if tree:
        inputs.append(_value("dependency", TensorProto.BOOL))
        nodes[:0] = [
            helper.make_node("Cast", ["dependency"], ["on"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["alpha", "on"], ["weight"]),
        ]
        next(node for node in nodes if "scaled" in node.output).input[1] = "weight"
    nodes += [
        helper.make_node("Identity", ["hidden"], ["states"]),
        helper.make_node("Transpose", ["hidden"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["hidden", "turned"], ["products"]),
        helper.make_node("Softmax", ["products"], ["weights"]),
        helper.make_node("Unsqueeze", ["weights", "first"], ["maps"]),
        helper.make_node("ReduceSum", ["hidden", "last"], ["sums"], keepdims=0),
        helper.make_node("Softmax", ["sums"], ["shares"]),
        helper.make_node("Div", ["mask", "count"], ["means"]),
        helper.make_node("Unsqueeze", ["shares", "first"], ["shares3"]),
        helper.make_node("Unsqueeze", ["means", "first"], ["means3"]),
        helper.make_node("Concat", ["shares3", "means3"], ["pooling"], axis=1),
        helper.make_node("Sigmoid", ["sums"], ["opened"]),
        helper.make_node("Unsqueeze", ["opened", "first"], ["gate"]),
    ]
    outputs = [
        _value("embedding", TensorProto.FLOAT, "B", table.shape[1]),
        _value("states", TensorProto.FLOAT, "B", "L", table.shape[1]),
        _value("pooling", TensorProto.FLOAT, "B", 2, "L"),
        _value("maps", TensorProto.FLOAT, "B", 1, "L", "L"),
        _value("gate", TensorProto.FLOAT, "B", 1, "L"),
    ]
    names = {"pooling": ["sums", "mean"], "maps": ["products"], "gate": ["gate"]}
    return _model(nodes, inputs, outputs, constants, names)


def _encoder_nodes(
    table: Floats, *, tree: bool, places: Floats | None
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Nodes, inputs and constants."""
    constants = {
        "table": table,
        "zero": np.array(0),
        "one": np.array(1),
        "last": np.array([-1]),
        "first": np.array([1]),
    }
    inputs = [_value("ids", TensorProto.INT64, "B", "S"), _value("lengths", TensorProto.INT64, "B")]
    nodes = [helper.make_node("Gather", ["table", "ids"], ["words"])]
    shaped = "ids"
    if places is not None:
        constants["places"] = places
        inputs.append(_value("pieces", TensorProto.INT64, "B", "L"))
        nodes, shaped = _words_of_pieces(), "pieces"
    summed = "words"
    if tree:
        inputs += [_value("heads", TensorProto.INT64, "B", "L"), _value("alpha", TensorProto.FLOAT)]
        nodes += [
            helper.make_node("Unsqueeze", ["heads", "last"], ["index"]),
            helper.make_node("GatherND", ["words", "index"], ["governors"], batch_dims=1),
            helper.make_node("Mul", ["governors", "alpha"], ["scaled"]),
            helper.make_node("Add", ["words", "scaled"], ["summed"]),
        ]
        summed = "summed"
    nodes += [
        helper.make_node("Tanh", [summed], ["hidden"]),
        helper.make_node("Shape", [shaped], ["length"], start=1, end=2),
        helper.make_node("Squeeze", ["length"], ["L"]),
        helper.make_node("Range", ["zero", "L", "one"], ["positions"]),
        helper.make_node("Unsqueeze", ["lengths", "last"], ["column"]),
        helper.make_node("Less", ["positions", "column"], ["inside"]),
        helper.make_node("Cast", ["inside"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["mask3"]),
        helper.make_node("Mul", ["hidden", "mask3"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "first"], ["total"], keepdims=0),
        helper.make_node("Cast", ["column"], ["count"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["total", "count"], ["embedding"]),
    ]
    return nodes, inputs, constants


def _compose(
    nodes: list[Any], inputs: list[Any], constants: dict[str, Any], shape: tuple[int, int]
) -> None:
    """The word table, followed by the composed words of `features`: the first is the last row, -1."""
    constants["spelling"] = np.random.default_rng(4).normal(size=shape).astype(np.float32)
    constants["end"] = np.array([-(2**31)])
    inputs.append(_value("features", TensorProto.INT64, "K", composition.FEATURES))
    nodes[0].input[0] = "words_and_composed"
    nodes[:0] = [
        helper.make_node("Gather", ["spelling", "features"], ["spelled"]),
        helper.make_node("ReduceSum", ["spelled", "first"], ["in_order"], keepdims=0),
        helper.make_node("Slice", ["in_order", "last", "end", "axis", "last"], ["composed"]),
        helper.make_node("Concat", ["table", "composed"], ["words_and_composed"], axis=0),
    ]
    constants["axis"] = np.array([0])


def _words_of_pieces() -> list[Any]:
    """(B, S) ids and (B, L) pieces of each word -> words (B, L, D)."""
    return [
        helper.make_node("Gather", ["table", "ids"], ["identities"]),
        helper.make_node("Shape", ["ids"], ["width"], start=1, end=2),
        helper.make_node("Squeeze", ["width"], ["S"]),
        helper.make_node("Range", ["zero", "S", "one"], ["span"]),
        helper.make_node("Gather", ["places", "span"], ["placed"]),
        helper.make_node("Add", ["identities", "placed"], ["vectors"]),
        helper.make_node("CumSum", ["pieces", "one"], ["summed_pieces"]),
        helper.make_node("Add", ["summed_pieces", "one"], ["ends"]),
        helper.make_node("Sub", ["ends", "pieces"], ["starts"]),
        helper.make_node("Unsqueeze", ["ends", "last"], ["ends3"]),
        helper.make_node("Unsqueeze", ["starts", "last"], ["starts3"]),
        helper.make_node("GreaterOrEqual", ["span", "starts3"], ["behind"]),
        helper.make_node("Less", ["span", "ends3"], ["before"]),
        helper.make_node("And", ["behind", "before"], ["own"]),
        helper.make_node("Cast", ["own"], ["own_float"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["own_float", "vectors"], ["word_sums"]),
        helper.make_node("Max", ["pieces", "one"], ["counted"]),
        helper.make_node("Unsqueeze", ["counted", "last"], ["counted3"]),
        helper.make_node("Cast", ["counted3"], ["counts_float"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["word_sums", "counts_float"], ["words"]),
    ]


def _doubled(graph: bytes) -> onnx.ModelProto:
    """The same graph, but that its embedding is added to itself."""
    model = onnx.load_from_string(graph)
    for node in model.graph.node:
        if "embedding" in node.output:
            node.output[0] = "half"
    model.graph.node.append(helper.make_node("Add", ["half", "half"], ["embedding"]))
    return model


def head_graph(kind: Kind, dimension: int, classes: int) -> bytes:
    """head.onnx: one linear layer over the sentence, or over [first; second; first * second]."""
    rng = np.random.default_rng(2)
    if kind == "classification":
        inputs = [_value("sentence", TensorProto.FLOAT, "B", dimension)]
        nodes, features, width = [], "sentence", dimension
    else:
        inputs = [_value(name, TensorProto.FLOAT, "B", dimension) for name in ("first", "second")]
        nodes = [
            helper.make_node("Mul", ["first", "second"], ["product"]),
            helper.make_node("Concat", ["first", "second", "product"], ["features"], axis=1),
        ]
        features, width = "features", 3 * dimension
    weights = rng.normal(size=(width, classes)).astype(np.float32)
    nodes.append(helper.make_node("MatMul", [features, "weights"], ["logits"]))
    outputs = [_value("logits", TensorProto.FLOAT, "B", classes)]
    return _model(nodes, inputs, outputs, {"weights": weights})


def _model(
    nodes: list[Any],
    inputs: list[Any],
    outputs: list[Any],
    constants: dict[str, Any],
    metadata: dict[str, Any] | None = None,
) -> bytes:
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, {k: json.dumps(v) for k, v in (metadata or {}).items()})
    onnx.checker.check_model(model, full_check=True)
    serialised: bytes = model.SerializeToString()
    return serialised


def _value(name: str, kind: int, *shape: str | int) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)
