"""Heads with batch norm as graphs: what training kept of its batches must reach them."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from heedful.export.onnx import head_graph
from heedful.export.weight_storage import round_weights
from heedful.models.heads import BatchNormClassificationHead, BatchNormNLIHead


@pytest.mark.parametrize(
    ("head", "inputs"),
    [
        (BatchNormNLIHead(6, hidden=5), ("first", "second")),
        (BatchNormClassificationHead(6, classes=2, hidden=5), ("sentence",)),
    ],
    ids=["nli", "classification"],
)
def test_a_batch_norm_head_exports(head: nn.Module, inputs: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):  # training moves the running means
        head.train()(
            *(torch.tensor(rng.normal(3, 2, (16, 6)), dtype=torch.float32) for _ in inputs)
        )
    round_weights(head.eval())
    session = onnxruntime.InferenceSession(
        head_graph(head, 6, inputs), providers=["CPUExecutionProvider"]
    )
    for size in (1, 2, 33):
        sides = rng.normal(size=(len(inputs), size, 6)).astype(np.float32)
        (logits,) = session.run(None, dict(zip(inputs, sides, strict=True)))
        with torch.inference_mode():
            expected = head(*map(torch.from_numpy, sides))
        np.testing.assert_allclose(logits, expected, atol=1e-5, rtol=0)
