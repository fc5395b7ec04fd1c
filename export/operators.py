"""Heedful's operators: functions that replace several nodes of an int8 graph, defined in ONNX's own operators.

A graph holds the definitions of the functions that it calls, so every ONNX runtime can run it. Where `kernels/` is
built, ONNX Runtime calls the C kernel of the same name instead: one pass over a row where the definition takes up to
nine, and DiSAN's attention without a loop of small steps.

Each function begins and ends at values that encoder.int8.onnx and explain.int8.onnx both compute, so the two give the
same sentence vector.
"""

from collections.abc import Iterator

import onnx
from onnx import helper, parser

DOMAIN, VERSION = "heedful", 1
OPSET = 20
"""Opset of the definitions and of the graphs (`export.onnx`)."""
PRODUCT = "MatMulIntegerToFloat"
"""ONNX Runtime's product of bytes, in the graphs of `export.int8`."""
ATTEND = ["Add", "Tanh", "Mul", "Exp", "MatMul", "Clip", "Mul", "MatMul", "Div"]
"""The nodes of `models.disan.attend`, the body of a loop over reference tokens."""

ROWS = """
RoundRows (x) => (bytes, scales)
{
    last = Constant <value_ints = [-1]> ()
    smallest = Constant <value = float {1e-30}> ()
    step = Constant <value = float {0.007874015748031496}> ()
    one = Constant <value = float {1.0}> ()
    zero = Constant <value = uint8 {128}> ()
    sizes = Abs (x)
    most = ReduceMax <keepdims = 1> (sizes, last)
    range = Max (most, smallest)
    scales = Mul (range, step)
    steps = Div (x, scales)
    bytes = QuantizeLinear (steps, one, zero)
}
Rescale (x, scales, bias) => (y)
{
    scaled = Mul (x, scales)
    y = Add (scaled, bias)
}
RescaleRelu (x, scales, bias) => (y)
{
    scaled = Mul (x, scales)
    shifted = Add (scaled, bias)
    y = Relu (shifted)
}
RescaleElu (x, scales, bias) => (y)
{
    none = Constant <value = float {0.0}> ()
    one = Constant <value = float {1.0}> ()
    scaled = Mul (x, scales)
    shifted = Add (scaled, bias)
    above = Max (shifted, none)
    below = Min (shifted, none)
    power = Exp (below)
    less = Sub (power, one)
    y = Add (above, less)
}
Blend (share, a, b) => (y)
{
    one = Constant <value = float {1.0}> ()
    first = Mul (share, a)
    rest = Sub (one, share)
    second = Mul (rest, b)
    y = Add (first, second)
}
"""
"""Before and after a product in integers: (.., D). `export.int8` explains RoundRows; Blend is a gate's mixture."""

WORDS = """
WordVectors (rows, steps, least, ids) => (vectors)
{
    low_bits = Constant <value = uint8 {15}> ()
    half = Constant <value = uint8 {4}> ()
    last = Constant <value_ints = [-1]> ()
    codes = Gather <axis = 0> (rows, ids)
    low = BitwiseAnd (codes, low_bits)
    high = BitShift <direction = "RIGHT"> (codes, half)
    low_apart = Unsqueeze (low, last)
    high_apart = Unsqueeze (high, last)
    halves = Concat <axis = -1> (low_apart, high_apart)
    block_steps = Gather <axis = 0> (steps, ids)
    block_least = Gather <axis = 0> (least, ids)
    float_steps = Cast <to = 1> (block_steps)
    float_least = Cast <to = 1> (block_least)
    step = Unsqueeze (float_steps, last)
    minimum = Unsqueeze (float_least, last)
    blocks = Shape (block_steps)
    by_block = Concat <axis = 0> (blocks, last)
    grouped = Reshape (halves, by_block)
    numbers = Cast <to = 1> (grouped)
    above = Mul (numbers, step)
    values = Add (above, minimum)
    tokens = Shape (ids)
    flat = Concat <axis = 0> (tokens, last)
    vectors = Reshape (values, flat)
}
"""
"""`export.weight_storage.Int4Table`: rows (V, D/2) of bytes, steps and least (V, blocks) in float16.

ids (..) -> (.., D). torch exports the halves of a byte as divisions of 32-bit numbers, whose signs are checked.
"""

POOLING = """
TokenSoftmax (scores, hidden) => (weights)
{
    never = Constant <value = float {-inf}> ()
    shown = Where (hidden, never, scores)
    weights = Softmax <axis = 1> (shown)
}
WeightedSum (weights, values) => (sum)
{
    tokens = Constant <value_ints = [1]> ()
    weighted = Mul (weights, values)
    sum = ReduceSum <keepdims = 0> (weighted, tokens)
}
TokenMaximum (values, hidden) => (largest)
{
    tokens = Constant <value_ints = [1]> ()
    never = Constant <value = float {-inf}> ()
    shown = Where (hidden, never, values)
    largest = ReduceMax <keepdims = 0> (shown, tokens)
}
"""
"""`models.pooling`: scores, weights, values (B, L, D), hidden (B, L, 1) -> (B, D)."""

GUIDED = """
GuidedWeights (queries, keys, penalty, hidden, divisor) => (weights)
{
    never = Constant <value = float {-inf}> ()
    same = Constant <value_ints = [0, 0]> ()
    rest = Constant <value_ints = [-1]> ()
    halves = Shape <start = 1, end = 2> (hidden)
    kinds = Shape <start = 2, end = 3> (penalty)
    heads = Concat <axis = 0> (same, halves, kinds, rest)
    query_heads = Reshape (queries, heads)
    q = Transpose <perm = [0, 2, 3, 1, 4]> (query_heads)
    key_heads = Reshape (keys, heads)
    k = Transpose <perm = [0, 2, 3, 4, 1]> (key_heads)
    products = MatMul (q, k)
    divided = Div (products, divisor)
    scores = Sub (divided, penalty)
    shown = Where (hidden, never, scores)
    weights = Softmax <axis = -1> (shown)
}
MixValues (weights, values) => (mixed)
{
    same = Constant <value_ints = [0, 0]> ()
    rest = Constant <value_ints = [-1]> ()
    each = Shape <start = 1, end = 3> (weights)
    heads = Concat <axis = 0> (same, each, rest)
    value_heads = Reshape (values, heads)
    v = Transpose <perm = [0, 2, 3, 1, 4]> (value_heads)
    summed = MatMul (weights, v)
    by_token = Transpose <perm = [0, 3, 1, 2, 4]> (summed)
    together = Concat <axis = 0> (same, rest)
    mixed = Reshape (by_token, together)
}
"""
"""`models.ms_san.MultiMaskAttention`: queries, keys and values (B, L, D).

penalty (B, 1, H/2, L, L), hidden (B, 2, 1, L, L); GuidedWeights -> (B, 2, H/2, L, L), MixValues -> (B, L, D).
"""

TREE = """
TreeDistance (heads) => (distance)
{{
    zero = Constant <value = int64 {{0}}> ()
    one = Constant <value = int64 {{1}}> ()
    two = Constant <value = float {{2.0}}> ()
    flat = Constant <value_ints = [-1]> ()
    one_axis = Constant <value_ints = [1]> ()
    row = Constant <value_ints = [-2]> ()
    size = Shape (heads)
    batch_axis = Shape <start = 0, end = 1> (heads)
    token_axis = Shape <start = 1> (heads)
    B = Squeeze (batch_axis)
    L = Squeeze (token_axis)
    tokens = Range (zero, L, one)
    column = Unsqueeze (tokens, flat)
    same = Equal (column, tokens)
    itself = Cast <to = 1> (same)
    repeats = Concat <axis = 0> (batch_axis, one_axis)
    above0 = Tile (itself, repeats)
    sentences = Range (zero, B, one)
    sentence = Unsqueeze (sentences, flat)
    first = Mul (sentence, L)
    rows = Add (heads, first)
    up0 = Reshape (rows, flat)
{rounds}
    cube = Concat <axis = 0> (size, token_axis)
    above = Reshape (above{n}, cube)
    depth = ReduceSum <keepdims = 0> (above, flat)
    turned = Transpose <perm = [0, 2, 1]> (above)
    shared = MatMul (above, turned)
    from = Unsqueeze (depth, flat)
    to = Unsqueeze (depth, row)
    sizes = Add (from, to)
    twice = Mul (shared, two)
    distance = Sub (sizes, twice)
}}
"""
"""`models.masks.tree_distance`: heads (B, L) -> (B, L, L)."""
ROUND = """    further{i} = Gather <axis = 0> (above{i}, up{i})
    above{next} = Max (above{i}, further{i})
    up{next} = Gather <axis = 0> (up{i}, up{i})"""

DIRECTIONAL = """
DirectionalAttention (queries, allowed, keys, values, c) => (s)
{
    zero = Constant <value_ints = [0]> ()
    one = Constant <value_ints = [1]> ()
    row = Constant <value_ints = [-2]> ()
    least = Constant <value = float {0.001}> ()
    s = Scan <num_scan_inputs = 2, body =
      step (float[] query, float[] may) => (float[] attention) {
        twice = Concat <axis = -2> (may, may)
        pair = Add (keys, query)
        bounded = Tanh (pair)
        scores = Mul (bounded, c)
        powers = Exp (scores)
        totals = MatMul (twice, powers)
        clipped = Clip (totals, least)
        weighed = Mul (powers, values)
        sums = MatMul (twice, weighed)
        both = Div (sums, clipped)
        attention = Slice (both, zero, one, row)
    }> (queries, allowed)
}
"""
"""`models.disan.attend` for every reference token: queries (L, B, 1, D), allowed (L, B, 1, L), keys, values (B, L, D)
-> (L, B, 1, D).

The sums are computed as two equal rows, for the reason that `export.int8` gives.
"""


def call_operators(model: onnx.ModelProto) -> None:
    """Replace the nodes of each operator's definition by a call of the operator, in place.

    Nodes that nothing reads any more stay.
    """
    graph = _Graph(model)
    nodes = []
    for node in model.graph.node:
        inputs = graph.operator(node)
        nodes.append(call(*inputs, list(node.output)) if inputs else node)
    model.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))
    called = {node.op_type for node in nodes if node.domain == DOMAIN}
    model.functions.extend(item for item in definitions(graph.rounds) if item.name in called)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def call(name: str, inputs: list[str], outputs: list[str]) -> onnx.NodeProto:
    return helper.make_node(name, inputs, outputs, domain=DOMAIN)


def definitions(rounds: int) -> Iterator[onnx.FunctionProto]:
    """Every operator as a function; TreeDistance is for trees of up to 2^rounds tokens."""
    doubling = "\n".join(ROUND.format(i=i, next=i + 1) for i in range(rounds))
    text = ROWS + WORDS + POOLING + GUIDED + TREE.format(rounds=doubling, n=rounds) + DIRECTIONAL
    for function in text.split("\n}\n")[:-1]:
        header = f'<domain: "{DOMAIN}", opset_import: ["" : {OPSET}]>'
        yield parser.parse_function(f"{header}\n{function}\n}}")


Match = tuple[str, list[str]] | None
"""The operator that computes a node's value, and its inputs."""
Pattern = str | tuple["Pattern", ...]
"""The name of a value, `_` for any value; or the operator that computes it, with patterns of its first inputs.

The operator may have `name=` before it, and its axis after it. The inputs of an Add may be in either order.
"""


def _heads(value: str) -> Pattern:
    """A value split into heads."""
    return ("Transpose", ("Reshape", value))


def _block(table: str) -> Pattern:
    """One number for each block of a word, in float32."""
    return ("Unsqueeze", ("Cast", ("Gather", table, "ids")))


_CODES = ("Concat", ("Unsqueeze", ("Mod", ("Cast", ("Gather", "rows", "ids")))))
_WORDS = (
    "Add",
    ("Mul", ("Reshape", ("Cast", ("Reshape", _CODES))), _block("steps")),
    _block("least"),
)
_RESCALED = ("Add", ("Mul", (f"x={PRODUCT}",), "scales"), "bias")
_GUIDED = ("Sub", ("Div", ("MatMul", _heads("queries"), _heads("keys")), "divisor"), "penalty")
_WEIGHTS = ("weights=Softmax -1", ("Where", "hidden", "_", _GUIDED))
_MIXED = ("Reshape", ("MatMul", _WEIGHTS, _heads("values")))
PATTERNS: tuple[tuple[str, Pattern, str], ...] = (
    ("Rescale", _RESCALED, "x scales bias"),
    ("RescaleRelu", ("Relu", _RESCALED), "x scales bias"),
    ("RescaleElu", ("Elu", _RESCALED), "x scales bias"),
    (
        "Blend",
        ("Add", ("Mul", ("share=Sigmoid",), "a"), ("Mul", ("Sub", "_", "share"), "b")),
        "share a b",
    ),
    ("WordVectors", ("Reshape", _WORDS), "rows steps least ids"),
    ("TokenSoftmax", ("Softmax 1", ("Where", "hidden", "_", "scores")), "scores hidden"),
    (
        "WeightedSum",
        ("ReduceSum", ("Mul", ("weights=Softmax 1", ("Where", "_", "_", "scores")), "values")),
        "weights values",
    ),
    ("TokenMaximum", ("ReduceMax", ("Where", "hidden", "_", "values")), "values hidden"),
    ("GuidedWeights", _WEIGHTS, "queries keys penalty hidden divisor"),
    ("MixValues", ("Reshape", ("Transpose", _MIXED)), "weights values"),
)
"""Operator, the pattern of the nodes that it replaces, and its inputs by their names in the pattern."""
_DISTANCE = ("Sub", "_", ("Mul", ("MatMul", ("Reshape", "above"))))


class _Graph:
    """An int8 graph, in which patterns are matched."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.producers = {name: node for node in model.graph.node for name in node.output}
        dims = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
        self.vectors = {name for name, sizes in dims.items() if len(sizes) == 1}
        self.numbers = {name for name, sizes in dims.items() if sizes == [1]}
        self.rounds = 0
        """Rounds of pointer doubling of TreeDistance, set when it is matched."""

    def operator(self, node: onnx.NodeProto) -> Match:
        """The operator that the node ends, and its inputs."""
        for name, pattern, inputs in PATTERNS:
            values: dict[str, str] = {}
            if self._match(node.output[0], pattern, values) and self._allowed(name, values):
                return name, [values[value] for value in inputs.split()]
        return self._directional_attention(node) or self._tree_distance(node)

    def _match(self, value: str, pattern: Pattern, values: dict[str, str]) -> bool:
        """Whether the pattern computes the value; the pattern's names are added to `values`."""
        if isinstance(pattern, str):
            return pattern == "_" or values.setdefault(pattern, value) == value
        kind, *inputs = pattern
        assert isinstance(kind, str)
        name, _, operator = kind.rpartition("=")
        operator, _, axis = operator.partition(" ")
        node = self.producers.get(value)
        if node is None or node.op_type != operator or (axis and _axis(node) != int(axis)):
            return False
        if name and values.setdefault(name, value) != value:
            return False
        orders = [list(node.input)]
        if operator == "Add":
            orders.append(orders[0][::-1])
        for order in orders:
            attempt = dict(values)
            if all(self._match(*pair, attempt) for pair in zip(order, inputs, strict=False)):
                values.update(attempt)
                return True
        return False

    def _allowed(self, name: str, values: dict[str, str]) -> bool:
        """Conditions besides the pattern, by the kernels: a bias is a vector, and each feature has its own score."""
        if name.startswith("Rescale"):
            return values["bias"] in self.vectors
        if name == "WeightedSum":
            scores = self.producers.get(values["scores"])
            single_score = scores and scores.op_type == "Add" and self.numbers & set(scores.input)
            return not single_score
        return True

    def _directional_attention(self, node: onnx.NodeProto) -> Match:
        if node.op_type != "Scan":
            return None
        body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
        if [step.op_type for step in body.node] != ATTEND:
            return None
        add, _, scale, power, _, _, weigh, _, _ = body.node
        (keys,) = set(add.input) - {body.input[0].name}
        (values,) = set(weigh.input) - {power.output[0]}
        return "DirectionalAttention", [*node.input, keys, values, scale.input[1]]

    def _tree_distance(self, node: onnx.NodeProto) -> Match:
        """The sizes of two sets of ancestors, less twice the number of shared ones."""
        values: dict[str, str] = {}
        if not self._match(node.output[0], _DISTANCE, values):
            return None
        rounds, above = 0, self.producers.get(values["above"])
        while above is not None and above.op_type == "Max":
            rounds, above = rounds + 1, self.producers.get(above.input[0])
        if not rounds:
            return None
        self.rounds = rounds
        return "TreeDistance", ["heads"]


def _axis(node: onnx.NodeProto) -> int:
    axis: int = next(attribute.i for attribute in node.attribute if attribute.name == "axis")
    return axis
