"""Heedful's operators: each kernel computes what the operator's definition says, with the same bits in any batch."""

import ctypes
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
import torch
from onnx import helper

from heedful import kernels
from heedful.export.operators import (
    DOMAIN,
    OPSET,
    VERSION,
    call,
    call_operators,
    definitions,
)
from heedful.export.weight_storage import Int4Table
from heedful.models.masks import doubling_rounds
from heedful.text.graph import open_session
from tests.forests import forest
from tests.reference import ms_san

Array = npt.NDArray[Any]

C = np.array(5, np.float32)
WIDTHS = [1, 7, 16, 48, 300]
ROUNDS = doubling_rounds(256)


def model_of(name: str, inputs: Mapping[str, Array], *, defined: bool = True) -> bytes:
    """A graph of one call of the operator, with its definition or without."""
    outputs = (
        {"y": np.float32} if name != "RoundRows" else {"bytes": np.uint8, "scales": np.float32}
    )
    read = [_value(key, value.dtype, value.ndim) for key, value in inputs.items()]
    given = [_value(key, np.dtype(kind), None) for key, kind in outputs.items()]
    graph = helper.make_graph([call(name, list(inputs), list(outputs))], "one", read, given)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, VERSION)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    made.functions.extend(one for one in definitions(ROUNDS) if defined and one.name == name)
    content: bytes = made.SerializeToString()
    return content


def _value(name: str, kind: np.dtype[Any], rank: int | None) -> onnx.ValueInfoProto:
    shape = None if rank is None else [None] * rank
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(kind), shape)


def run(name: str, inputs: Mapping[str, Array], *, kernel: bool) -> list[Array]:
    found: list[Array] = open_session(model_of(name, inputs), kernels=kernel).run(None, inputs)
    return found


def both(name: str, inputs: Mapping[str, Array]) -> tuple[list[Array], list[Array]]:
    """By the definition, and by the kernel."""
    return run(name, inputs, kernel=False), run(name, inputs, kernel=True)


def floats(*shape: int, seed: int = 0, scale: float = 1) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


@pytest.fixture(autouse=True)
def built() -> None:
    assert kernels.library(), "no kernels were built: was HEEDFUL_KERNELS set to 0?"


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_rounded_to_the_definitions_bytes(width: int) -> None:
    x = floats(40, 3, width, scale=10)
    x[0] = 0
    x[1] *= 1e-20
    x[2] = np.round(x[2])  # quotients in the middle between two steps
    expected, found = both("RoundRows", {"x": x})
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])


@pytest.mark.parametrize("name", ["Rescale", "RescaleRelu", "RescaleElu"])
@pytest.mark.parametrize("width", WIDTHS)
def test_rescaled_products(name: str, width: int) -> None:
    inputs = {"x": floats(4, 5, width, scale=300), "scales": np.abs(floats(4, 5, 1))}
    inputs["bias"] = floats(width, seed=1)
    (expected,), (found,) = both(name, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=3e-5)


@pytest.mark.parametrize("width", WIDTHS)
def test_blend(width: int) -> None:
    share = 1 / (1 + np.exp(-floats(2, 3, width)))
    inputs = {"share": share, "a": floats(2, 3, width, seed=1), "b": floats(2, 3, width, seed=2)}
    (expected,), (found,) = both("Blend", inputs)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
def test_pooling(width: int) -> None:
    scores, values = floats(3, 9, width, scale=8), floats(3, 9, width, seed=1)
    hidden = np.arange(9) >= np.array([9, 1, 4])[:, None]
    (expected,), (weights,) = both("TokenSoftmax", {"scores": scores, "hidden": hidden[..., None]})
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    assert not weights[hidden].any()
    (expected,), (found,) = both("WeightedSum", {"weights": weights, "values": values})
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for row, length in enumerate([9, 1, 4]):
        u = values[row, :length]
        pooled = ms_san.attentive_pooling(u, _score_of(u, scores[row]))
        np.testing.assert_allclose(found[row], pooled, atol=1e-5)


@pytest.mark.parametrize("scores", [1, 5])
def test_tokens_are_weighed_by_the_kernel_where_each_feature_has_a_score(scores: int) -> None:
    """The graph itself weighs tokens by one score for all features, which the kernel does not take."""
    graph = f"""<ir_version: 10, opset_import: ["": {OPSET}]>
    pooled (float[B, L, {scores}] x, float[B, L, 5] values, bool[B, L, 1] hidden) => (float[B, 5] y)
    <float[{scores}] bias = {{{", ".join(["0.5"] * scores)}}}, float never = {{-1e9}}, int64[1] tokens = {{1}}>
    {{
        biased = Add (x, bias)
        shown = Where (hidden, never, biased)
        weights = Softmax <axis = 1> (shown)
        weighted = Mul (weights, values)
        y = ReduceSum <keepdims = 0> (weighted, tokens)
    }}"""
    model = onnx.parser.parse_model(graph)
    feeds = {"x": floats(2, 4, scores), "values": floats(2, 4, 5, seed=1)}
    feeds["hidden"] = np.array([[[0], [0], [0], [1]], [[0], [1], [1], [1]]], np.bool_)
    (expected,) = open_session(model.SerializeToString()).run(None, feeds)
    call_operators(model)
    called = {node.op_type for node in model.graph.node if node.domain == DOMAIN}
    assert called == {"TokenSoftmax"} | ({"WeightedSum"} if scores == 5 else set())
    for kernel in (True, False):
        (found,) = open_session(model.SerializeToString(), kernels=kernel).run(None, feeds)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def _score_of(tokens: Array, scores: Array) -> Callable[[Array], Array]:
    """What gives the scores of one of these tokens, as the reference asks for them."""
    return lambda token: scores[next(i for i, one in enumerate(tokens) if (one == token).all())]


@pytest.mark.parametrize("width", WIDTHS)
def test_token_maximum(width: int) -> None:
    values, hidden = floats(3, 9, width), np.arange(9) >= np.array([9, 1, 4])[:, None]
    (expected,), (found,) = both("TokenMaximum", {"values": values, "hidden": hidden[..., None]})
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found[2], ms_san.max_pooling(values[2, :4]))


@pytest.mark.parametrize("width", [2, 30, 300])
def test_words_in_4_bits_have_the_bits_of_their_table(width: int) -> None:
    torch.manual_seed(0)
    table = Int4Table(torch.randn(50, width) * torch.logspace(-7, 3, 50)[:, None])
    ids = np.random.default_rng(0).integers(0, 50, (4, 7))
    parts = {name: getattr(table, name).numpy() for name in ("rows", "steps", "least")}
    (expected,), (found,) = both("WordVectors", {**parts, "ids": ids})
    np.testing.assert_array_equal(expected, table(torch.from_numpy(ids)).numpy())
    np.testing.assert_array_equal(found, expected)


def directional(lengths: list[int], D: int, may_attend: Any, seed: int = 0) -> dict[str, Array]:
    """DirectionalAttention's inputs."""
    B, L, place = len(lengths), max(lengths), np.arange(max(lengths))
    allowed = may_attend(place, place[:, None])[:, None] & (place < np.array(lengths)[:, None])
    return {
        "queries": floats(L, B, 1, D, seed=seed),
        "allowed": allowed[:, :, None].astype(np.float32),
        "keys": floats(B, L, D, seed=seed + 1, scale=2),
        "values": floats(B, L, D, seed=seed + 2),
        "c": C,
    }


def sentence_of(inputs: dict[str, Array], row: int, length: int) -> dict[str, Array]:
    """One sentence of DirectionalAttention's inputs, without its padding."""
    one = {name: inputs[name][:length, row : row + 1] for name in ("queries", "allowed")}
    one["allowed"] = one["allowed"][..., :length]
    one |= {name: inputs[name][row : row + 1, :length] for name in ("keys", "values")}
    return {**one, "c": C}


RELATIONS = [np.less, np.greater, np.not_equal]
BATCHES = [[1], [5, 1, 2], [128, 40], [200, 33, 129], [259, 1]]


@pytest.mark.parametrize("may_attend", RELATIONS)
@pytest.mark.parametrize("width", WIDTHS)
def test_directional_attention_is_equation_15(may_attend: Any, width: int) -> None:
    inputs = directional([6, 1, 4], width, may_attend)
    expected, found = both("DirectionalAttention", inputs)
    for row, length in enumerate([6, 1, 4]):
        keys, values = inputs["keys"][row], inputs["values"][row]
        for j in range(length):
            allowed = [i for i in range(length) if may_attend(i, j)]
            s = np.zeros(width)
            if allowed:
                scores = C * np.tanh(keys[allowed] + inputs["queries"][j, row])
                weights = np.exp(scores.astype(float)) / np.exp(scores.astype(float)).sum(0)
                s = (weights * values[allowed]).sum(0)
            np.testing.assert_allclose(found[0][j, row, 0], s, atol=2e-6)
            np.testing.assert_allclose(expected[0][j, row, 0], s, atol=2e-6)


def test_directional_attention_of_large_scores() -> None:
    inputs = directional([5], 20, np.less)
    inputs["queries"] *= 10
    inputs["keys"] *= 5
    (expected,), (found,) = both("DirectionalAttention", inputs)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    inputs["keys"] *= 1e9
    assert np.isfinite(run("DirectionalAttention", inputs, kernel=True)[0]).all()


@pytest.mark.parametrize("kernel", [False, True])
def test_a_sentence_has_the_same_bits_alone_and_in_a_batch(kernel: bool) -> None:
    """A sentence ends before others of its batch do."""
    for may_attend, lengths in itertools.product(RELATIONS, BATCHES):
        inputs = directional(lengths, 30, may_attend)
        (together,) = run("DirectionalAttention", inputs, kernel=kernel)
        for row, length in enumerate(lengths):
            one = sentence_of(inputs, row, length)
            (alone,) = run("DirectionalAttention", one, kernel=kernel)
            np.testing.assert_array_equal(alone[:, 0], together[:length, row])


def guided(lengths: list[int], D: int, halves: int = 2, kinds: int = 3) -> dict[str, Array]:
    """GuidedWeights' inputs; padding tokens attend to themselves."""
    B, L, place = len(lengths), max(lengths), np.arange(max(lengths))
    directions = np.stack([place <= place[:, None], place >= place[:, None]][:halves])
    padding = place >= np.array(lengths)[:, None]
    allowed = directions[None, :, None] & ~padding[:, None, None, None] | np.eye(L, dtype=bool)
    return {
        "queries": floats(B, L, D),
        "keys": floats(B, L, D, seed=1),
        "penalty": np.abs(floats(B, 1, kinds, L, L, seed=2)),
        "hidden": ~allowed,
        "divisor": np.array(np.sqrt(D / halves / kinds), np.float32),
    }


@pytest.mark.parametrize("D", [6, 30, 96, 300])
@pytest.mark.parametrize("lengths", [[1], [5, 3], [16, 17, 40]])
def test_guided_attention(D: int, lengths: list[int]) -> None:
    inputs = guided(lengths, D)
    (expected,), (weights,) = both("GuidedWeights", inputs)
    np.testing.assert_allclose(weights, expected, atol=2e-6)
    assert not weights[np.broadcast_to(inputs["hidden"], weights.shape)].any()
    one = inputs | {"penalty": inputs["penalty"][:1]}  # may serve every sentence
    (expected,), (shared,) = both("GuidedWeights", one)
    np.testing.assert_allclose(shared, expected, atol=2e-6)
    mixed = {"weights": weights, "values": floats(len(lengths), max(lengths), D, seed=3)}
    (expected,), (found,) = both("MixValues", mixed)
    np.testing.assert_allclose(found, expected, atol=5e-6)


def test_guided_attention_has_the_same_bits_alone_and_in_a_batch() -> None:
    lengths = [3, 20, 16, 33, 1]
    inputs = guided(lengths, 300)
    values = floats(len(lengths), max(lengths), 300, seed=3)
    (weights,) = run("GuidedWeights", inputs, kernel=True)
    (mixed,) = run("MixValues", {"weights": weights, "values": values}, kernel=True)
    for row, length in enumerate(lengths):
        at = slice(row, row + 1)
        one = {name: inputs[name][at, :length] for name in ("queries", "keys")}
        one |= {name: inputs[name][at, ..., :length, :length] for name in ("penalty", "hidden")}
        (alone,) = run("GuidedWeights", {**one, "divisor": inputs["divisor"]}, kernel=True)
        np.testing.assert_array_equal(alone[0], weights[row, ..., :length, :length])
        own = {"weights": alone, "values": values[row : row + 1, :length]}
        np.testing.assert_array_equal(run("MixValues", own, kernel=True)[0][0], mixed[row, :length])


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 200])
def test_distances_in_trees(length: int) -> None:
    rng = np.random.default_rng(length)
    heads = np.stack([forest(rng, length) for _ in range(3)]).astype(np.int64)
    (expected,), (found,) = both("TreeDistance", {"heads": heads})
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found[0], ms_san.dependency_distances(heads[0].tolist()))


@pytest.mark.parametrize("build", kernels.BUILDS)
def test_every_build_that_runs_here_computes_the_same(
    build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kernels.path_of(build)
    if not ctypes.CDLL(str(path)).runs_here():
        pytest.skip(f"this processor does not run {build}")
    monkeypatch.setattr("heedful.text.graph.library", lambda: path)
    for name, inputs in {
        "RoundRows": {"x": floats(9, 300)},
        "RescaleElu": {"x": floats(9, 300), "scales": floats(9, 1), "bias": floats(300)},
        "DirectionalAttention": directional([9, 4], 300, np.less),
        "GuidedWeights": guided([9, 4], 300),
    }.items():
        for expected, found in zip(*both(name, inputs), strict=True):
            np.testing.assert_allclose(found, expected, atol=3e-6)
