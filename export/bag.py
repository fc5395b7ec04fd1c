"""A linear classifier that reads words (training.linear) -> the graphs of a bundle.

The logits of the words are values of the sentence's vector, after those of the frozen encoder, and the head
adds both. So the service needs nothing new, and int8 and explain graphs stay.
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
"""Texts that the graphs are compared with numpy on."""
NAMES = "bag_"
"""Begins the name of every value that is added to a graph."""


def reads_words(base: Bundle) -> bool:
    """Whether its graph holds logits of words already; no graph holds them twice."""
    graph = onnx.load_from_string(base.files[ENCODER]).graph
    return any(value.name.startswith(NAMES) for value in graph.initializer)


def with_words(base: Bundle, lexicon: Lexicon, linear: Linear) -> Bundle:
    """The base with the words' logits after its vector, which is scaled to length 1; not on disk yet.

    `lexicon` begins with the base's words. It may have more where the base composes none; the encoder reads those as
    unknown.
    """
    extra = 0 if len(lexicon) == len(base.vocab) else len(base.vocab)
    attach = _Attachment(linear, base.card.composed, len(base.vocab), extra, base.card.dimension)
    graphs = edited(base, lambda model: attach(_unscalable(model)))
    files = {**base.files, **graphs, **_lexicon_file(base, lexicon)}
    classes = linear.words.shape[1]
    card = base.card.model_copy(update={"dimension": base.card.dimension + classes})
    return replace(base, card=card, files=files, vocab=lexicon)


def words_alone(base: Bundle, lexicon: Lexicon, linear: Linear) -> Bundle:
    """A bundle of the words' logits alone, with the base's tokenizer; not on disk yet."""
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


def _unscalable(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph without the input `scale`, in place: now not only the encoder reads the words."""
    kept = [value for value in model.graph.input if value.name != SCALE]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model


def _lexicon_file(base: Bundle, lexicon: Lexicon) -> dict[str, bytes]:
    if not isinstance(lexicon, Vocab):
        return {TOKENIZER: base.files[TOKENIZER]}
    return {VOCAB: "".join(f"{word}\n" for word in lexicon.words).encode()}


def head_of(linear: Linear, labels: Sequence[str]) -> LinearHead:
    """The head over the vectors of these bundles: it adds both kinds of logits."""
    classes = len(linear.intercepts)
    both = [linear.coefficients] if linear.recipe.vectors else []
    if linear.bag:
        both.append(np.eye(classes))
    return LinearHead(
        np.concatenate(both, axis=1) / linear.temperature,
        linear.intercepts / linear.temperature,
        tuple(labels),
        normalize=not linear.bag,
    )


def check(made: Bundle, linear: Linear, sentences: Sequence[Sentence]) -> float:
    """The largest difference between a logit of the words in the graph and in numpy. Raises ParityError."""
    assert linear.bag is not None
    few = sentences[:CHECKED]
    feeds = encoder_feeds(made.card, collate(few))
    (vectors,) = open_session(made.files[ENCODER]).run(None, feeds)
    listed = len(made.vocab)
    keys = [bag.word_keys(sentence, listed) for sentence in few]
    expected = linear.bag.features(keys) @ linear.words
    error = float(np.abs(vectors[:, -expected.shape[1] :] - expected).max())
    if not error <= TOLERANCE * max(1.0, float(np.abs(expected).max())):  # NaN fails as well
        raise ParityError(f"the graph of the words is {error:.1e} away from numpy")
    return error


class _Attachment:
    """Adds the words' logits to a graph that has `ids`, `features` if words are composed, and `embedding`."""

    def __init__(self, linear: Linear, composed: int, listed: int, extra: int, width: int) -> None:
        """`composed` is the card's, and `listed` the first key of a composed word.

        `extra` is the first id that the encoder does not know, 0 where it knows all; `width` is the frozen vector's,
        0 without one.
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
        made = copy.deepcopy(model)
        graph = made.graph
        output = next(value for value in graph.output if value.name == "embedding")
        names = {"embedding": f"{NAMES}frozen"} if self._width else {}
        before = []
        if self._extra:
            names["ids"] = f"{NAMES}listed"
            before = [
                _node("Less", "ids", "extra", out="known"),
                _node("Where", "known", "ids", "unknown", out="listed"),
            ]
        frozen = [renamed(node, names) for node in graph.node]
        del graph.node[:]
        graph.node.extend([*before, *frozen, *self._keys(), *self._logits()])
        last = [f"{NAMES}logits"]
        if self._width:
            graph.node.append(
                helper.make_node(
                    "LpNormalization", [f"{NAMES}frozen"], [f"{NAMES}unit"], axis=-1, p=2
                )
            )
            last.insert(0, f"{NAMES}unit")
        graph.node.append(helper.make_node("Concat", last, ["embedding"], axis=1))
        output.type.tensor_type.shape.dim[1].dim_value = self._width + self._classes
        graph.initializer.extend(
            numpy_helper.from_array(value, f"{NAMES}{name}")
            for name, value in self._constants().items()
        )
        onnx.checker.check_model(made, full_check=True)
        return made

    def _constants(self) -> dict[str, npt.NDArray[np.generic]]:
        first, second = bag.FACTORS
        numbers = {"pad": PAD, "one": 1, "first": first, "second": second, "buckets": self._buckets}
        if self._extra:
            numbers |= {"extra": self._extra, "unknown": UNKNOWN}
        if self._composed:
            numbers |= {"least": 0, "minus": -1, "listed": self._listed, "numbers": bag.COMPOSED}
        made = {name: np.array(value, np.int64) for name, value in numbers.items()}
        slices = {"axis": [1], "from0": [0], "from1": [1], "last": [-1], "end": [2**31]}
        made |= {name: np.array(value, np.int64) for name, value in slices.items()}
        if self._composed:
            made["weights"] = bag.SIGNATURE
            made["signature"] = np.array([-composition.SIGNATURE], np.int64)
        tiny = np.array(np.finfo(np.float32).tiny, np.float32)
        return {**made, "table": self._table, "tiny": tiny, "classes": np.array([self._classes])}

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
    """A node whose values have NAMES before their names, but for the graph's own inputs."""
    named = [name if name in ("ids", "features") else NAMES + name for name in inputs]
    return helper.make_node(kind, named, [NAMES + out], **attributes)


def _value(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)
