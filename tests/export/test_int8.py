"""Weights that are stored small; graphs of integer products: close to the float ones, independent of the batch."""

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from torch import nn

from heedful.export import batch_invariance
from heedful.export.bundle import make_bundle
from heedful.export.int8 import LARGEST, float_graph, int8_columns, int8_graph, products
from heedful.export.weight_storage import Int4Table, Int8Linear, Int8Table, round_weights
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8, ParserCard
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.runtime.explain.graph import ExplainGraph
from heedful.text.arrays import Floats
from heedful.text.batch import Sentence, collate
from tests.asking import present
from tests.export.test_encoders import sentence as random_sentence
from tests.export.trained import MAX_TOKENS, classifier
from tests.graphs import graph


def run(model: onnx.ModelProto, x: npt.NDArray[np.generic]) -> Floats:
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=providers)
    return np.asarray(session.run(None, {"x": x})[0], np.float32)


def test_columns_are_within_half_a_step() -> None:
    rng = np.random.default_rng(0)
    matrix = (rng.normal(size=(9, 30)) * np.logspace(-6, 3, 30)).astype(np.float32)
    matrix[:, 3] = 0
    columns, scales = int8_columns(matrix)
    assert (np.abs(columns * scales - matrix) <= np.abs(matrix).max(0) / LARGEST * 0.5001).all()
    assert np.abs(np.delete(columns, 3, 1)).max(0).tolist() == [LARGEST] * 29
    assert not columns[:, 3].any()


@settings(max_examples=30)
@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_a_product_is_that_of_rounded_rows_and_columns(rows: int, width: int, seed: int) -> None:
    """To the last digit the sum of integers, times the column's and the row's scale; a row of zeros gives zeros."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(width, 5)).astype(np.float32)
    x = (rng.normal(size=(rows, width)) * 10.0 ** rng.integers(-6, 6, (rows, 1))).astype(np.float32)
    x[0] = 0
    content = graph(f"float[N, {width}] x", "float[N, 5] y", "y = MatMul (x, w)", {"w": matrix})
    model = onnx.load_from_string(content)
    keys = {product.key for product in products(model)}
    found = run(int8_graph(model, keys), x)

    largest = np.maximum(np.abs(x).max(1, keepdims=True), np.float32(1e-30))
    steps = largest * np.float32(1 / 127)
    columns, scales = int8_columns(matrix)
    sums = np.round(x / steps).astype(np.int64) @ columns.astype(np.int64)
    np.testing.assert_array_equal(found, sums.astype(np.float32) * scales * steps)
    apart = np.abs(run(float_graph(model, keys), x) - x @ (columns * scales))
    assert (apart <= 1e-3 * steps).all()


def test_elu_is_elu_with_the_same_bits_anywhere() -> None:
    rng = np.random.default_rng(0)
    w, body = np.eye(3, dtype=np.float32), "m = MatMul (x, w)\ny = Elu (m)"
    content = graph("float[N, 3] x", "float[N, 3] y", body, {"w": w})
    made = int8_graph(onnx.load_from_string(content), set())
    assert "Elu" not in {node.op_type for node in made.graph.node}
    x = (rng.normal(size=(701, 3)) * 3).astype(np.float32)
    found = run(made, x)
    np.testing.assert_allclose(found, np.where(x > 0, x, np.expm1(x)), atol=1e-6)
    alone = np.concatenate([run(made, x[i : i + 1]) for i in range(0, 701, 50)])
    np.testing.assert_array_equal(alone, found[::50])


# DSA, LAMA and the Bi-LSTM stay float32.
@pytest.fixture(scope="module", params=["ms-san", "disan"])
def made(request: pytest.FixtureRequest) -> Bundle:
    parser = ParserCard(name="en_tiny", fingerprint="0" * 64)
    return make_bundle(classifier(request.param, parser), request.param, int8=True)


def vectors(bundle: Bundle, *sentences: Sentence, graph: str = ENCODER_INT8) -> Floats:
    session = OrtSession(bundle.files[graph], "cpu", 2, files=bundle.files)
    return session.run(encoder_feeds(bundle.card, collate(sentences)))


def test_every_product_of_ms_san_is_taken_and_its_weights_stand_once(made: Bundle) -> None:
    int8 = present(made.card.int8)
    assert int8.company <= 1e-5
    if made.card.name == "ms-san":
        assert (int8.products, int8.left) == (12, 0)
    matrices = sum(
        len(tensor.raw_data)
        for name in (ENCODER_INT8, EXPLAIN_INT8)
        for tensor in onnx.load_from_string(made.files[name]).graph.initializer
        if len(tensor.dims) > 1
    )
    assert matrices < sum(len(made.files[name]) for name in (ENCODER, EXPLAIN)) / 50


def test_its_vectors_are_near_those_of_the_float_graph(made: Bundle) -> None:
    rng = np.random.default_rng(1)
    chosen = [random_sentence(rng, length) for length in rng.integers(1, MAX_TOKENS, 40)]
    near, exact = (vectors(made, *chosen, graph=graph) for graph in (ENCODER_INT8, ENCODER))
    norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(near, axis=1)
    assert ((exact * near).sum(axis=1) / norms).min() >= 0.999


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, MAX_TOKENS),
    st.lists(st.integers(1, MAX_TOKENS), min_size=1, max_size=20),
    st.data(),
)
def test_a_vector_is_the_same_in_any_batch(
    made: Bundle, seed: int, length: int, others: list[int], data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    sentence = random_sentence(rng, length)
    batch = [random_sentence(rng, n) for n in others]
    place = data.draw(st.integers(0, len(batch)))
    together = vectors(made, *batch[:place], sentence, *batch[place:])
    alone = vectors(made, sentence)
    np.testing.assert_allclose(together[place], alone[0], atol=1e-5, rtol=0)


def test_the_explanations_vector_is_the_plain_ones(made: Bundle) -> None:
    rng = np.random.default_rng(0)
    explainer = ExplainGraph(made.files, made.card, EXPLAIN_INT8)
    for length in (1, 2, 7, 23, MAX_TOKENS):
        sentence = random_sentence(rng, length)
        found = explainer.run(explainer.feeds(collate([sentence])))
        np.testing.assert_allclose(found.embedding, vectors(made, sentence), atol=1e-5, rtol=0)
        for weights in found.maps.values():
            sums = weights.sum(-1)  # DiSAN's first token attends to none
            np.testing.assert_allclose(sums[sums != 0], 1, atol=1e-5)


def test_a_value_that_depends_on_the_batch_is_found(nli: Bundle) -> None:
    """One scale for the whole tensor, as in dynamic quantisation."""
    model = onnx.load_from_string(nli.files[ENCODER])
    every = products(model)
    read = every[0].input
    absolute = helper.make_node("Abs", [read], ["absolute"])
    largest = helper.make_node("ReduceMax", ["absolute"], ["largest"], keepdims=0)
    model.graph.node.extend([absolute, largest])
    model.graph.node.append(helper.make_node("Div", [read, "largest"], ["rounded"]))
    found = batch_invariance.compare(model, {read, "rounded"}, nli.card, nli.vocab)
    assert found.dependent == {"rounded"}


def test_int8_rows_are_within_half_a_step() -> None:
    weight = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    weight *= torch.logspace(-6, 3, 30)[:, None]  # rows of very different length
    weight[7] = 0
    table = Int8Table(weight)
    step = weight.abs().amax(1, keepdim=True) / 127
    found = table(torch.arange(30).view(2, 15)).view(30, 8)
    assert ((found - weight).abs() <= step * 0.5001).all()
    assert table.rows.dtype == torch.int8
    assert int(table.rows.abs().amax()) == 127
    linear = nn.Linear(9, 4)
    small, x = Int8Linear(linear), torch.randn(2, 3, 9)
    torch.testing.assert_close(small(x), x @ small.weight.T + linear.bias)
    step = linear.weight.abs().amax(1, keepdim=True) / 127
    assert ((small.weight - linear.weight).abs() <= step * 0.5001).all()


@pytest.mark.parametrize("width", [64, 24, 2])
def test_int4_values_are_within_half_a_step_of_their_block(width: int) -> None:
    weight = torch.randn(30, width, generator=torch.Generator().manual_seed(0)) + 1
    weight *= torch.logspace(-2, 2, 30)[:, None]
    weight[7] = 0.5
    table = Int4Table(weight)
    blocks = weight.unflatten(1, (-1, table.block))
    step = (blocks.amax(-1, keepdim=True) - blocks.amin(-1, keepdim=True)) / 15
    found = table(torch.arange(30).view(2, 15)).view(30, -1, table.block)
    half = blocks.abs().amax(-1, keepdim=True) * 2**-11  # the least value is float16
    assert ((found - blocks).abs() <= step * 0.51 + 2 * half).all()
    assert (found[7] == 0.5).all()
    assert table.rows.numel() == weight.numel() // 2
    with pytest.raises(ValueError, match="a table of 5 features has no int4 form"):
        Int4Table(torch.randn(3, 5))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["0.weight", "1.weight", "1.bias"])
def test_a_weight_that_is_no_finite_number_is_refused(name: str, value: float) -> None:
    model = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 2))
    with torch.no_grad():
        model.get_parameter(name)[1] = value
    with pytest.raises(ValueError, match=rf"a weight of {name} is not a finite number: train"):
        round_weights(model, "small")
