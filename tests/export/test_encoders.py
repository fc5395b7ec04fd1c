"""Every encoder of the registry as a graph: a new one is tested by being registered."""

import copy

import pytest
import torch

from export.onnx import encoder_graph
from export.parity import TOLERANCE, Model, check
from export.quantize import round_weights
from models.registry import ENCODERS, build
from models.sentence import SentenceEncoder, word_table
from tests.export.trained import DIM, MAX_TOKENS, WORDS
from tests.models.test_encoders import SMALLER


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_the_graph_is_the_encoder(name: str) -> None:
    torch.manual_seed(0)
    encoder = build(name, {"dim": DIM, "max_tokens": MAX_TOKENS, **SMALLER.get(name, {})})
    model = SentenceEncoder(word_table(torch.randn(WORDS, DIM), frozen=False), encoder).eval()
    rounded = copy.deepcopy(model)
    round_weights(rounded)
    graphs = {"encoder": encoder_graph(rounded)}
    parity = check(graphs, Model(rounded, None, ()), Model(model, None, ()), WORDS, MAX_TOKENS)
    assert parity.error <= TOLERANCE
