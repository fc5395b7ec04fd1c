"""The arc parser against its loop-form reference."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.text.arrays import Doubles
from tests.reference import arc_parser as reference
from tools.parser.model import FAR, ArcParser

TABLES = (11, 7, 9, 8)
ARC = 6

rows = st.tuples(*[st.integers(0, size - 1) for size in TABLES for _ in range(4)])
sentences = st.lists(rows, min_size=1, max_size=12)


@pytest.fixture(scope="module")
def model() -> ArcParser:
    torch.manual_seed(3)
    made = ArcParser(
        tables=TABLES, relations=5, width=8, embedding=4, arc=ARC, rotary=4, relation=7, dropout=0.3
    ).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.7)
    return made.eval()


def weights(model: ArcParser) -> dict[str, Doubles]:
    return {name: value.numpy() for name, value in model.state_dict().items()}


def asked(texts: list[list[tuple[int, ...]]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Every word of the texts has its own row."""
    places = torch.zeros(len(texts), max(map(len, texts)), dtype=torch.long)
    seen = 0
    for row, text in enumerate(texts):
        places[row, : len(text)] = torch.arange(seen + 1, seen + len(text) + 1)
        seen += len(text)
    return torch.tensor([word for text in texts for word in text]), places


@settings(max_examples=25)
@given(st.lists(sentences, min_size=1, max_size=3))
def test_scores_are_the_references(model: ArcParser, texts: list[list[tuple[int, ...]]]) -> None:
    with torch.inference_mode():
        scores, dependents, governors = model(*asked(texts))
        heads = scores.argmax(-1)
        names = model.relations(dependents, governors, (heads - 1).clamp(min=0))
    w = weights(model)
    for row, text in enumerate(texts):
        n = len(text)
        x = reference.read(w, text)
        expected = reference.arcs(w, x, ARC)
        found = scores[row, :n, : n + 1].numpy()
        possible = np.isfinite(expected)
        np.testing.assert_allclose(found[possible], expected[possible], atol=1e-4, rtol=1e-5)
        assert (found[~possible] == FAR).all()
        assert (scores[row, :n, n + 1 :] == FAR).all()
        for i in range(n):
            head = int(heads[row, i])
            if head:
                expected = reference.relation(w, x[i], x[head - 1])
                np.testing.assert_allclose(names[row, i].numpy(), expected, atol=1e-6)
