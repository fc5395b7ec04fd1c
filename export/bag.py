"""A linear classifier that reads words (training.linear) -> the graphs of a bundle.

The logits of the words are appended to the sentence's vector of the frozen encoder, and the head adds both. So the
service needs nothing new, and the bundle keeps its int8 and explain graphs.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from heedful.export.errors import ParityError
from heedful.export.graph_edits import edited, renamed
from heedful.export.linear_head import OPSET, TOLERANCE, LinearHead
from heedful.export.weight_sharing import serialize
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER, TOKENIZER, VOCAB
from heedful.runtime.engine.graphs import encoder_feeds, encoder_inputs
from heedful.runtime.explain.graph import SCALE
from heedful.text import composition
from heedful.text.batch import PAD, Sentence, collate
from heedful.text.graph import open_session
from heedful.text.pieces import Lexicon
from heedful.text.vocab import UNKNOWN, Vocab
from heedful.training import bag
from heedful.training.linear import Linear

CHECKED = 64
"""Texts on which the graph is compared with numpy."""
PREFIX = "bag_"
"""Prefix of the name of every value that is added to a graph."""


def reads_words(base: Bundle) -> bool:
    """Whether its graph has logits of words already; no graph can have them twice."""
    graph = onnx.load_from_string(base.files[ENCODER]).graph
    return any(value.name.startswith(PREFIX) for value in graph.initializer)


def with_words(base: Bundle, lexicon: Lexicon, linear: Linear) -> Bundle:
    """The base with the words' logits appended to its vector, which is scaled to length 1; not on disk yet.

    `lexicon` begins with the base's words. It may have more words where the base composes none; the encoder reads
    these as unknown.
    """
    extra = 0 if len(lexicon) == len(base.vocab) else len(base.vocab)
    attach = _Attachment(linear, base.card.composed, len(base.vocab), extra, base.card.dimension)
    graphs = edited(base, lambda model: attach(_without_scale(model)))
    files = {**base.files, **graphs, **_lexicon_file(base, lexicon)}
    classes = linear.words.shape[1]
    card = base.card.model_copy(update={"dimension": base.card.dimension + classes})
    return replace(base, card=card, files=files, vocab=lexicon)


def words_only(base: Bundle, lexicon: Lexicon, linear: Linear) -> Bundle:
    """A bundle whose vector is the words' logits alone, with the base's tokenizer; not on disk yet."""
    classes = linear.words.shape[1]
    update = {
        "encoder": base.card.encoder.model_copy(
            update={"name": "bag", "config": {}, "parameters": linear.words.size, "paper": "none"}
        ),
        "dimension": classes,
        "tree": False,
        "cost": "linear",
        "alpha": None,
        "int8": None,
    }
    card = base.card.model_copy(update=update)
    inputs = [
        _value(name, TensorProto.INT64, *"BS"[:rank])
        for name, (_, rank) in encoder_inputs(card).items()
    ]
    empty = helper.make_graph([], "words", inputs, [_value("embedding", TensorProto.FLOAT, "B", 0)])
    model = helper.make_model(empty, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    attach = _Attachment(linear, card.composed, len(lexicon), 0, 0)
    files = {**_lexicon_file(base, lexicon), ENCODER: serialize(attach(model))}
    return replace(base, card=card, files=files, vocab=lexicon)


def _without_scale(model: onnx.ModelProto) -> onnx.ModelProto:
    """Remove the input `scale`, in place: it would scale the words for the encoder, not for the appended logits."""
    inputs = [value for value in model.graph.input if value.name != SCALE]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    return model


def _lexicon_file(base: Bundle, lexicon: Lexicon) -> dict[str, bytes]:
    if not isinstance(lexicon, Vocab):
        return {TOKENIZER: base.files[TOKENIZER]}
    return {VOCAB: "".join(f"{word}\n" for word in lexicon.words).encode()}


def head_of(linear: Linear, labels: Sequence[str]) -> LinearHead:
    """The head over the vectors of these bundles, which adds the logits of vectors and words."""
    classes = len(linear.intercepts)
    blocks = [linear.coefficients] if linear.recipe.vectors else []
    if linear.bag:
        blocks.append(np.eye(classes))
    return LinearHead(
        np.concatenate(blocks, axis=1) / linear.temperature,
        linear.intercepts / linear.temperature,
        tuple(labels),
        normalize=not linear.bag,
    )


def check(bundle: Bundle, linear: Linear, sentences: Sequence[Sentence]) -> float:
    """The largest difference between a logit of the words in the graph and in numpy. Raises ParityError."""
    assert linear.bag is not None
    sample = sentences[:CHECKED]
    feeds = encoder_feeds(bundle.card, collate(sample))
    (vectors,) = open_session(bundle.files[ENCODER]).run(None, feeds)
    listed = len(bundle.vocab)
    keys = [bag.word_keys(sentence, listed) for sentence in sample]
    expected = linear.bag.features(keys) @ linear.words
    error = float(np.abs(vectors[:, -expected.shape[1] :] - expected).max())
    if not error <= TOLERANCE * max(1.0, float(np.abs(expected).max())):  # NaN fails as well
        raise ParityError(f"the graph of the words is {error:.1e} away from numpy")
    return error


class _Attachment:
    """Appends the words' logits to a graph's `embedding`, from its `ids` and, if words are composed, `features`."""

    def __init__(self, linear: Linear, composed: int, listed: int, extra: int, width: int) -> None:
        """`composed` is the card's, and `listed` the first key of a composed word.

        `extra` is the first id that the encoder does not know, 0 where it knows all; `width` is the length of the
        frozen vector, 0 without one.
        """
        assert linear.bag is not None
        self._composed, self._listed, self._extra = bool(composed), listed, extra
        self._width = width
        self._buckets, self._classes = linear.words.shape
        idf = linear.bag.idf[:, None]
        table = np.concatenate([linear.words * idf, idf**2], axis=1)
        # The last row is for padding.
        self._table = np.concatenate([table, np.zeros((1, table.shape[1]))]).astype(np.float16)

    def __call__(self, model: onnx.ModelProto) -> onnx.ModelProto:
        extended = copy.deepcopy(model)
        graph = extended.graph
        output = next(value for value in graph.output if value.name == "embedding")
        names = {"embedding": f"{PREFIX}frozen"} if self._width else {}
        known_ids = []
        if self._extra:
            names["ids"] = f"{PREFIX}listed"
            known_ids = [
                _node("Less", "ids", "extra", out="known"),
                _node("Where", "known", "ids", "unknown", out="listed"),
            ]
        frozen = [renamed(node, names) for node in graph.node]
        del graph.node[:]
        graph.node.extend([*known_ids, *frozen, *self._keys(), *self._logits()])
        parts = [f"{PREFIX}logits"]
        if self._width:
            graph.node.append(
                helper.make_node(
                    "LpNormalization", [f"{PREFIX}frozen"], [f"{PREFIX}unit"], axis=-1, p=2
                )
            )
            parts.insert(0, f"{PREFIX}unit")
        graph.node.append(helper.make_node("Concat", parts, ["embedding"], axis=1))
        output.type.tensor_type.shape.dim[1].dim_value = self._width + self._classes
        graph.initializer.extend(
            numpy_helper.from_array(value, f"{PREFIX}{name}")
            for name, value in self._constants().items()
        )
        onnx.checker.check_model(extended, full_check=True)
        return extended

    def _constants(self) -> dict[str, npt.NDArray[np.generic]]:
        first, second = bag.FACTORS
        numbers = {"pad": PAD, "one": 1, "first": first, "second": second, "buckets": self._buckets}
        if self._extra:
            numbers |= {"extra": self._extra, "unknown": UNKNOWN}
        if self._composed:
            numbers |= {"least": 0, "minus": -1, "listed": self._listed, "numbers": bag.COMPOSED}
        arrays = {name: np.array(value, np.int64) for name, value in numbers.items()}
        slices = {"axis": [1], "from0": [0], "from1": [1], "last": [-1], "end": [2**31]}
        arrays |= {name: np.array(value, np.int64) for name, value in slices.items()}
        if self._composed:
            arrays["weights"] = bag.SIGNATURE
            arrays["signature"] = np.array([-composition.SIGNATURE], np.int64)
        tiny = np.array(np.finfo(np.float32).tiny, np.float32)
        return {**arrays, "table": self._table, "tiny": tiny, "classes": np.array([self._classes])}

    def _keys(self) -> list[onnx.NodeProto]:
        """ids (B, S) -> the keys of `training.bag.word_keys`."""
        if not self._composed:
            return [_node("Identity", "ids", out="keys")]
        return [
            _node("Slice", "features", "signature", "end", "axis", out="signatures"),
            _node("Mul", "signatures", "weights", out="weighted"),
            _node("ReduceSum", "weighted", "axis", out="hashed", keepdims=0),
            _node("Mod", "hashed", "numbers", out="numbered"),
            _node("Add", "numbered", "listed", out="composed"),
            _node("Sub", "minus", "ids", out="opposite"),
            _node("Max", "opposite", "least", out="places"),
            _node("Gather", "composed", "places", out="read"),
            _node("Less", "ids", "least", out="negative"),
            _node("Where", "negative", "read", "ids", out="keys"),
        ]

    def _logits(self) -> list[onnx.NodeProto]:
        """Buckets of words and pairs, the last one for padding -> rows of the table -> logits (B, C)."""
        return [
            _node("Mul", "keys", "first", out="words"),
            _node("Mod", "words", "buckets", out="word_buckets"),
            _node("Equal", "keys", "pad", out="padding"),
            _node("Where", "padding", "buckets", "word_buckets", out="word_rows"),
            _node("Slice", "words", "from0", "last", "axis", out="left"),
            _node("Slice", "keys", "from1", "end", "axis", out="right"),
            _node("Add", "right", "one", out="right_one"),
            _node("Mul", "right_one", "second", out="right_term"),
            _node("Add", "left", "right_term", out="pairs"),
            _node("Mod", "pairs", "buckets", out="pair_buckets"),
            _node("Equal", "right", "pad", out="pair_padding"),
            _node("Where", "pair_padding", "buckets", "pair_buckets", out="pair_rows"),
            _node("Concat", "word_rows", "pair_rows", out="rows", axis=1),
            _node("Gather", "table", "rows", out="halves"),
            _node("Cast", "halves", out="values", to=TensorProto.FLOAT),
            _node("ReduceSum", "values", "axis", out="sums", keepdims=0),
            _node("Slice", "sums", "from0", "classes", "axis", out="weighed"),
            _node("Slice", "sums", "classes", "end", "axis", out="squares"),
            _node("Max", "squares", "tiny", out="positive"),
            _node("Sqrt", "positive", out="norm"),
            _node("Div", "weighed", "norm", out="logits"),
        ]


def _node(kind: str, *inputs: str, out: str, **attributes: Any) -> onnx.NodeProto:
    """A node that puts PREFIX before the names of its values, except the inputs of the graph."""
    values = [name if name in ("ids", "features") else PREFIX + name for name in inputs]
    return helper.make_node(kind, values, [PREFIX + out], **attributes)


def _value(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)
