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
from tests.transformer import LIMIT, tiny_transformer


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_the_graph_is_the_encoder(name: str) -> None:
    torch.manual_seed(0)
    encoder = build(name, {"dim": DIM, "max_tokens": MAX_TOKENS, **SMALLER.get(name, {})})
    of_pieces = "cls" in encoder.inputs
    words = (
        tiny_transformer(DIM) if of_pieces else word_table(torch.randn(WORDS, DIM), frozen=False)
    )
    model = SentenceEncoder(words, encoder).eval()
    rounded = copy.deepcopy(model)
    round_weights(rounded)
    graphs = {"encoder": encoder_graph(rounded)}
    limit = LIMIT if of_pieces else None
    same, exact = Model(rounded, None, ()), Model(model, None, ())
    parity = check(graphs, same, exact, WORDS, MAX_TOKENS, limit)
    assert parity.error <= TOLERANCE
