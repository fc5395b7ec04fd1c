"""Heedful's operators: each kernel computes what the operator's definition says, with the same bits in any batch."""

import ctypes
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
import torch
from onnx import helper

from heedful import kernels
from heedful.export.operators import DOMAIN, OPSET, VERSION, call, definitions
from heedful.export.weight_storage import Int4Table
from heedful.models.masks import doubling_rounds
from heedful.text.graph import open_session
from tests.forests import forest
from tests.reference import ms_san

Array = npt.NDArray[Any]

C = np.array(5, np.float32)
WIDTHS = [1, 7, 16, 48, 96, 300]
HIDDEN = np.arange(9) >= np.array([9, 1, 4])[:, None]
ROUNDS = doubling_rounds(256)


def model_of(name: str, inputs: Mapping[str, Array], *, defined: bool = True) -> bytes:
    """A graph of one call of the operator, with its definition or without."""
    two = {"bytes": np.uint8, "scales": np.float32}
    outputs = two if name == "RoundRows" else {"y": np.float32}
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


@pytest.mark.parametrize("width", [2, 30, 300])
def test_words_in_4_bits_have_the_bits_of_their_table(width: int) -> None:
    torch.manual_seed(0)
    table = Int4Table(torch.randn(50, width) * torch.logspace(-7, 3, 50)[:, None])
    ids = np.random.default_rng(0).integers(0, 50, (4, 7))
    parts = {name: getattr(table, name).numpy() for name in ("rows", "steps", "least")}
    (expected,), (found,) = both("WordVectors", {**parts, "ids": ids})
    np.testing.assert_array_equal(expected, table(torch.from_numpy(ids)).numpy())
    np.testing.assert_array_equal(found, expected)


def directional(lengths: list[int], D: int, may_attend: Any) -> dict[str, Array]:
    """DirectionalAttention's inputs."""
    B, L, place = len(lengths), max(lengths), np.arange(max(lengths))
    allowed = may_attend(place, place[:, None])[:, None] & (place < np.array(lengths)[:, None])
    return {
        "queries": floats(L, B, 1, D),
        "allowed": allowed[:, :, None].astype(np.float32),
        "keys": floats(B, L, D, seed=1, scale=2),
        "values": floats(B, L, D, seed=2),
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


def guided(lengths: list[int], D: int) -> dict[str, Array]:
    """GuidedWeights' inputs, of two directions and three kinds; padding tokens attend to themselves."""
    B, L, place = len(lengths), max(lengths), np.arange(max(lengths))
    directions = np.stack([place <= place[:, None], place >= place[:, None]])
    padding = place >= np.array(lengths)[:, None]
    allowed = directions[None, :, None] & ~padding[:, None, None, None] | np.eye(L, dtype=bool)
    return {
        "queries": floats(B, L, D),
        "keys": floats(B, L, D, seed=1),
        "penalty": np.abs(floats(B, 1, 3, L, L, seed=2)),
        "hidden": ~allowed,
        "divisor": np.array(np.sqrt(D / 6), np.float32),
    }


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


def every_call(width: int) -> dict[str, dict[str, Array]]:
    """Inputs of each operator that computes with floats."""
    x, y, z = (floats(3, 9, width, seed=seed) for seed in range(3))
    rows = floats(40, width, scale=10)
    rows[:2] *= np.array([[0], [1e-20]], np.float32)
    rows[2:20] = np.round(rows[2:20])  # quotients in the middle between two steps
    product = {"x": 300 * x, "scales": np.abs(floats(3, 9, 1)), "bias": floats(width, seed=1)}
    size = 6 * -(-width // 6)  # two directions of three kinds
    weights = floats(3, 2, 3, 40, 40, seed=4) / 40
    return {
        "RoundRows": {"x": rows},
        **dict.fromkeys(("Rescale", "RescaleRelu", "RescaleElu"), product),
        "Blend": {"share": 1 / (1 + np.exp(-x)), "a": y, "b": z},
        "TokenSoftmax": {"scores": 8 * x, "hidden": HIDDEN[..., None]},
        "TokenMaximum": {"values": x, "hidden": HIDDEN[..., None]},
        "WeightedSum": {"weights": x, "values": y},
        "DirectionalAttention": directional([6, 1, 4], width, np.less),
        "GuidedWeights": guided([16, 17, 40], size),
        "MixValues": {"weights": weights, "values": floats(3, 40, size, seed=5)},
    }


EXACT = {"RoundRows", "TokenMaximum"}


@pytest.mark.parametrize("build", kernels.BUILDS)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_build_of_each_kernel_computes_the_definition(
    build: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kernels.path_of(build)
    if not ctypes.CDLL(str(path)).runs_here():
        pytest.skip(f"this processor does not run {build}")
    monkeypatch.setattr("heedful.text.graph.library", lambda: path)
    for name, inputs in every_call(width).items():
        bound = 0 if name in EXACT else 3e-5 if name.startswith("Rescale") else 5e-6
        for expected, found in zip(*both(name, inputs), strict=True):
            np.testing.assert_allclose(found, expected, rtol=bound, atol=bound, err_msg=name)


def test_hidden_tokens_have_no_weight_and_one_penalty_may_serve_every_sentence() -> None:
    inputs = guided([5, 3], 30)
    (weights,) = run("GuidedWeights", inputs, kernel=True)
    assert not weights[np.broadcast_to(inputs["hidden"], weights.shape)].any()
    (expected,), (shared,) = both("GuidedWeights", inputs | {"penalty": inputs["penalty"][:1]})
    np.testing.assert_allclose(shared, expected, atol=2e-6)
