"""Encoders that go over the tokens in a loop, as exported graphs."""

import numpy as np
import onnx
import onnxruntime
import torch

from heedful.export.onnx import encoder_graph
from heedful.models.registry import build
from heedful.models.sentence import SentenceEncoder, word_table
from tests.export.trained import DIM, WORDS


def test_disan_holds_no_weight_per_pair_and_feature() -> None:
    """No tensor outside its two loops over the reference token has B*L*L*D values."""
    torch.manual_seed(0)
    model = SentenceEncoder(
        word_table(torch.randn(WORDS, DIM), frozen=True), build("disan", {"dim": DIM})
    )
    graph = onnx.load_from_string(encoder_graph(model.eval()))
    loops = [node for node in graph.graph.node if node.op_type == "Scan"]
    assert len(loops) == 2
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
