"""An encoder's graph with its attention replaced: the score that remains shows what attention is worth.

Every softmax is replaced, of token attention and of pooling alike, among the tokens that the masks allow.
Attention in a loop (DiSAN's between tokens) has no softmax node in the graph and stays. A token counts as allowed
where its weight is above 0: in MS-SAN's heads with a distance up to about 100 tokens away.
"""

from typing import Any, Literal

import onnx
from onnx import TensorProto, helper

from heedful.export.errors import ExportError

Control = Literal["uniform", "permuted", "random"]
SEED = 1.0


def controlled(encoder: bytes, control: Control) -> bytes:
    """The graph whose attention is uniform, permuted among the allowed tokens, or random and fixed.

    Raises ExportError for a graph without a softmax.
    """
    model = onnx.load_from_string(encoder)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    replaced = 0
    for node in nodes:
        model.graph.node.append(node)
        if node.op_type == "Softmax":
            model.graph.node.extend(_replacement(model.graph.node[-1], control, replaced))
            replaced += 1
    if not replaced:
        raise ExportError("its graph holds no softmax: there is no attention to replace")
    serialised: bytes = model.SerializeToString()
    return serialised


def _replacement(softmax: onnx.NodeProto, control: Control, number: int) -> list[onnx.NodeProto]:
    """Nodes that compute the softmax's output in its place, from its weights, which get another name."""
    out = softmax.output[0]
    axis = next((each.i for each in softmax.attribute if each.name == "axis"), -1)

    def named(part: str) -> str:
        return f"{out}_{control}_{part}"

    weights = named("weights")
    softmax.output[0] = weights
    allowed = [
        helper.make_node("Sign", [weights], [named("allowed")]),  # weights are never negative
        helper.make_node(
            "Constant", [], [named("axes")], value_ints=[axis], name=named("axes_node")
        ),
    ]
    noise = helper.make_node(
        "RandomUniformLike",
        [weights],
        [named("noise")],
        low=1.0,
        high=2.0 if control == "permuted" else 10.0,
        seed=SEED + number,
        dtype=TensorProto.FLOAT,
    )
    chosen = helper.make_node("Mul", [named("allowed"), named("noise")], [named("chosen")])
    if control == "permuted":
        end: dict[str, Any] = {} if axis == -1 else {"end": axis + 1}
        return [
            *allowed,
            noise,
            chosen,
            helper.make_node("Shape", [weights], [named("length")], start=axis, **end),
            helper.make_node(
                "TopK", [weights, named("length")], [named("sorted"), named("_")], axis=axis
            ),
            helper.make_node(
                "TopK",
                [named("chosen"), named("length")],
                [named("__"), named("places")],
                axis=axis,
            ),
            helper.make_node(
                "ScatterElements", [weights, named("places"), named("sorted")], [out], axis=axis
            ),
        ]
    shares = named("allowed") if control == "uniform" else named("chosen")
    drawn = [] if control == "uniform" else [noise, chosen]
    return [
        *allowed,
        *drawn,
        helper.make_node("ReduceSum", [shares, named("axes")], [named("sum")], keepdims=1),
        helper.make_node("Div", [shares, named("sum")], [out]),
    ]
