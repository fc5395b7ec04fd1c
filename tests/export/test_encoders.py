"""Every encoder of the registry as graphs: a new one is tested by being registered."""

import copy
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from export.onnx import encoder_graph, explain_graph
from export.parity import TOLERANCE, Model, check
from export.quantize import round_weights
from export.share import LEAST, share_weights
from models.registry import ENCODERS, build
from models.sentence import SentenceEncoder, word_table
from runtime.bundle import ENCODER, EXPLAIN
from runtime.card import Card
from runtime.explainer import Explainer
from runtime.graphs import encoder_feeds
from runtime.session import OrtSession
from tests.export.trained import DIM, MAX_TOKENS, WORDS
from tests.forests import forest
from tests.models.test_encoders import SMALLER
from tests.transformer import LIMIT, tiny_transformer
from text.batch import Sentence, collate

ALPHA = 0.8


def rounded(name: str, dim: int = DIM) -> tuple[SentenceEncoder, SentenceEncoder]:
    """The encoder over a word table, as trained and as it is stored."""
    torch.manual_seed(0)
    encoder = build(name, {"dim": dim, "max_tokens": MAX_TOKENS, **SMALLER.get(name, {})})
    over = "cls" in encoder.inputs  # a transformer
    words = tiny_transformer(dim) if over else word_table(torch.randn(WORDS, dim), frozen=False)
    model = SentenceEncoder(words, encoder).eval()
    stored = copy.deepcopy(model)
    round_weights(stored)
    return model, stored


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_the_graphs_are_the_encoder(name: str) -> None:
    model, stored = rounded(name)
    graphs = {"encoder": encoder_graph(stored)}
    limit = LIMIT if "pieces" in model.inputs else None
    same, exact = Model(stored, None, ()), Model(model, None, ())
    parity = check(graphs, same, exact, WORDS, MAX_TOKENS, limit)
    assert parity.error <= TOLERANCE
    check_explanations(stored, graphs["encoder"], explain_graph(stored))


@torch.inference_mode()
def check_explanations(model: SentenceEncoder, encoder: bytes, explain: bytes) -> None:
    """Through the runtime, sentence by sentence: torch's, to 1e-5; and of the plain graph's vector."""
    shared = share_weights(explain, encoder)
    assert not left_behind(shared)
    alpha = ALPHA if "alpha" in model.inputs else None
    fields: dict[str, Any] = {"tree": "heads" in model.inputs, "alpha": alpha}
    card = Card.model_construct(**fields)  # of which nothing else is read
    files = {ENCODER: encoder, EXPLAIN: shared}
    explainer = Explainer(files, card)
    plain = OrtSession(encoder, "cpu", 1, explainer.shared)
    assert explainer.priors == model.encoder.priors
    rng = np.random.default_rng(0)
    for length in (1, 2, 9, MAX_TOKENS):
        batch = collate([sentence(rng, length, pieces="pieces" in model.inputs)])
        for off in (None, *explainer.priors):
            feeds = explainer.feeds(batch, {off: False} if off else {})
            found = explainer.run(feeds)
            known = model.explain(**{name: torch.as_tensor(v) for name, v in feeds.items()})
            np.testing.assert_allclose(found.embedding, known.sentence, atol=1e-5, rtol=0)
            np.testing.assert_allclose(found.states, known.states, atol=1e-5, rtol=0)
            for kind in ("pooling", "maps", "gate"):
                expected = getattr(known, kind)
                assert list(getattr(found, kind)) == list(expected)
                for name, weights in getattr(found, kind).items():
                    np.testing.assert_allclose(weights, expected[name], atol=1e-5, rtol=0)
                    np.testing.assert_array_equal(weights == 0, np.asarray(expected[name]) == 0)
            if off is None:
                vector = plain.run(encoder_feeds(card, batch))
                np.testing.assert_allclose(found.embedding, vector, atol=1e-5, rtol=0)


def sentence(rng: np.random.Generator, length: int, *, pieces: bool) -> Sentence:
    """Of words, or of two pieces a word."""
    if not pieces:
        return Sentence(rng.integers(1, WORDS, length), forest(rng, length))
    ids = rng.integers(1, WORDS, 2 * length + 2)
    return Sentence(ids, forest(rng, length), np.full(length, 2))


def left_behind(graph: bytes) -> list[str]:
    """Weights that explain.onnx holds itself."""
    initializers = onnx.load_from_string(graph).graph.initializer
    return [tensor.name for tensor in initializers if len(tensor.raw_data) >= LEAST]


def test_matrices_too_large_to_be_turned_round_by_the_exporter_are_shared() -> None:
    _, stored = rounded("disan", dim=120)
    encoder, explain = encoder_graph(stored), explain_graph(stored)
    shared = share_weights(explain, encoder)
    assert not left_behind(shared)
    assert len(shared) < len(encoder) / 4
