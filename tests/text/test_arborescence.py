"""Decoding gives the best tree, as networkx finds it; tests/text/test_arc_parser.py has batches and padding."""

from itertools import product

import networkx  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heedful.text.arborescence import best_heads
from heedful.text.arrays import Doubles
from heedful.text.structure import check_heads


def scores(longest: int) -> st.SearchStrategy[Doubles]:
    """(L, 1 + L) of coarse values: ties and cycles are common."""
    values = st.floats(-20, 20, width=16)
    return st.integers(1, longest).flatmap(lambda n: arrays(float, (n, 1 + n), elements=values))


@settings(max_examples=60)
@given(scores(24))
@example(np.random.default_rng(1).normal(size=(64, 65)))  # with cycles within cycles
def test_networkx_finds_no_better_tree(values: Doubles) -> None:
    words = np.arange(len(values))
    values[words, 1 + words] = -1e4  # as the graph gives them: no word governs itself
    graph = networkx.DiGraph()
    for word, head in product(words.tolist(), range(len(values) + 1)):
        if head != word + 1:
            graph.add_edge(head, word + 1, weight=values[word, head])
    tree = networkx.maximum_spanning_arborescence(graph, preserve_attrs=True)
    expected = sum(data["weight"] for _, _, data in tree.edges(data=True))
    (heads,) = best_heads(values[None], np.array([len(values)]))
    check_heads(np.where(heads == 0, words, heads - 1))  # 0 is the root
    assert values[words, heads].sum() == pytest.approx(expected)
