"""Decoding gives a tree, and the best there is: networkx, and every tree of a few words, say so."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heedful.text.arborescence import best_heads
from heedful.text.arrays import Doubles, Ints
from heedful.text.structure import check_heads

FAR = -1e4


def scores(longest: int) -> st.SearchStrategy[Doubles]:
    """(L, 1 + L) as the graph gives them: no word governs itself."""

    def of(length: int) -> st.SearchStrategy[Doubles]:
        values = st.floats(-20, 20, width=16)  # coarse: ties and cycles are common
        return arrays(np.float64, (length, 1 + length), elements=values)

    return st.integers(1, longest).flatmap(of).map(without_loops)


def without_loops(values: Doubles) -> Doubles:
    values = values.copy()
    values[np.arange(len(values)), 1 + np.arange(len(values))] = FAR
    return values


def total(values: Doubles, heads: Ints) -> float:
    return float(values[np.arange(len(values)), heads].sum())


def check_forest(heads: Ints) -> None:
    """Check governors, which are numbered from 1; 0 is the root."""
    check_heads(np.where(heads == 0, np.arange(len(heads)), heads - 1))


def decode(values: Doubles) -> Ints:
    heads: Ints
    (heads,) = best_heads(values[None], np.array([len(values)]))
    check_forest(heads)
    return heads


@given(scores(5))
def test_no_tree_of_a_few_words_is_better(values: Doubles) -> None:
    length, best = len(values), -np.inf
    for choice in product(range(length + 1), repeat=length):
        try:
            check_forest(np.array(choice))
        except ValueError:
            continue
        if all(head != i + 1 for i, head in enumerate(choice)):
            best = max(best, total(values, np.array(choice)))
    assert total(values, decode(values)) == pytest.approx(best)


@settings(max_examples=60)
@given(scores(24))
def test_networkx_finds_no_better_tree(values: Doubles) -> None:
    networkx = pytest.importorskip("networkx")  # of the development install
    graph = networkx.DiGraph()
    for word, head in product(range(len(values)), range(len(values) + 1)):
        if head != word + 1:
            graph.add_edge(head, word + 1, weight=values[word, head])
    tree = networkx.maximum_spanning_arborescence(graph, preserve_attrs=True)
    expected = sum(data["weight"] for _, _, data in tree.edges(data=True))
    assert total(values, decode(values)) == pytest.approx(expected)


def test_cycles_within_cycles_of_a_long_text() -> None:
    """Random scores of 256 words: greedy governors hold cycles, and contracting them makes others."""
    values = without_loops(np.random.default_rng(1).normal(size=(256, 257)))
    with pytest.raises(ValueError, match="cycle"):
        check_forest(values.argmax(-1))
    assert total(values, decode(values)) <= values.max(-1).sum()


@given(st.lists(scores(8), min_size=1, max_size=5), st.integers(0, 4))
def test_batching_and_padding_change_nothing(texts: list[Doubles], more: int) -> None:
    longest = max(map(len, texts)) + more
    batch = np.full((len(texts), longest, longest + 1), FAR)
    for row, values in enumerate(texts):
        batch[row, : len(values), : len(values) + 1] = values
    together = best_heads(batch, np.array([len(values) for values in texts]))
    for values, heads in zip(texts, together, strict=True):
        assert heads[: len(values)].tolist() == decode(values).tolist()
        assert not heads[len(values) :].any()
