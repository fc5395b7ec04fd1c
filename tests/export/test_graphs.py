"""The exported files as ONNX Runtime runs them, and what they store."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from heedful.export.int8 import products
from heedful.export.onnx import encoder_graph, head_graph
from heedful.export.weight_storage import round_weights
from heedful.models.heads import BatchNormClassificationHead, BatchNormNLIHead
from heedful.models.registry import build
from heedful.models.sentence import SentenceEncoder, word_table
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER
from heedful.text.graph import open_session
from tests.export.trained import DIM, WORDS


def test_a_graph_without_distances_asks_for_neither_tree_nor_alpha(plain: Bundle) -> None:
    feeds = {"ids": np.ones((2, 9), np.int64), "lengths": np.array([4, 9])}
    (vectors,) = open_session(plain.files[ENCODER]).run(None, feeds)
    assert vectors.shape == (2, plain.card.dimension)
    assert (plain.card.tree, plain.card.alpha) == (False, None)


def test_weights_are_stored_small(nli: Bundle) -> None:
    model = onnx.load(nli.folder / ENCODER)
    kinds = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    matrices = {name: kinds[name] for name, shape in shapes.items() if len(shape) == 2}
    table = next(
        name for name, shape in shapes.items() if shape == (WORDS, nli.card.dimension // 2)
    )
    assert matrices.pop(table) == onnx.TensorProto.INT8
    scales = next(name for name, shape in shapes.items() if shape == (WORDS, 1))
    assert matrices.pop(scales) == onnx.TensorProto.FLOAT
    assert len(matrices) == 12  # four projections, four of the gate, two feed-forward layers
    assert set(matrices.values()) == {onnx.TensorProto.FLOAT16}


def test_a_bundle_says_nothing_of_the_machine_it_was_made_on(nli: Bundle) -> None:
    for file in nli.folder.iterdir():
        content = file.read_bytes()
        assert b".py" not in content
        assert str(Path.cwd()).encode() not in content


@pytest.mark.parametrize(
    ("head", "inputs"),
    [
        (BatchNormNLIHead(6, hidden=5), ("first", "second")),
        (BatchNormClassificationHead(6, classes=2, hidden=5), ("sentence",)),
    ],
    ids=["nli", "classification"],
)
def test_a_batch_norm_head_exports(head: nn.Module, inputs: tuple[str, ...]) -> None:
    """What training kept of its batches must reach the graph."""
    rng = np.random.default_rng(0)
    for _ in range(5):  # training moves the running means
        head.train()(
            *(torch.tensor(rng.normal(3, 2, (16, 6)), dtype=torch.float32) for _ in inputs)
        )
    round_weights(head.eval())
    session = open_session(head_graph(head, 6, inputs))
    for size in (1, 2, 33):
        sides = rng.normal(size=(len(inputs), size, 6)).astype(np.float32)
        (logits,) = session.run(None, dict(zip(inputs, sides, strict=True)))
        with torch.inference_mode():
            expected = head(*map(torch.from_numpy, sides))
        np.testing.assert_allclose(logits, expected, atol=1e-5, rtol=0)


def test_disan_holds_no_weight_per_pair_and_feature() -> None:
    """No tensor outside its two loops over the reference token has B*L*L*D values."""
    torch.manual_seed(0)
    model = SentenceEncoder(
        word_table(torch.randn(WORDS, DIM), frozen=True), build("disan", {"dim": DIM})
    )
    graph = onnx.load_from_string(encoder_graph(model.eval()))
    assert [node.op_type for node in graph.graph.node].count("Scan") == 2
    B, L = 4, 10
    inner = {node.output[0] for node in graph.graph.node if node.output[0]}
    for name in inner - {output.name for output in graph.graph.output}:
        graph.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options)
    feeds = {"ids": np.ones((B, L), np.int64), "lengths": np.full(B, L)}
    sizes = [np.asarray(value).size for value in session.run(None, feeds)]
    assert max(sizes) < B * L * L * DIM


@pytest.mark.parametrize("name", ["dsa", "cnn-max"])
def test_convolutions_are_products(name: str) -> None:
    torch.manual_seed(0)
    table = word_table(torch.randn(WORDS, DIM), frozen=True)
    model = SentenceEncoder(table, build(name, {"dim": DIM, "max_tokens": 30})).eval()
    graph = onnx.load_from_string(encoder_graph(model))
    kinds = [node.op_type for node in graph.graph.node]
    assert "Conv" not in kinds
    names = {product.matrix for product in products(graph)}
    weights = [one for one, _ in model.named_parameters() if one.endswith("weight")]
    convolved = {one for one in weights if ".convolutions." in one or ".cnn." in one}
    assert convolved <= names
