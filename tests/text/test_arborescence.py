"""Decoding gives a tree, and the best there is: networkx, and every tree of a few words, say so."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heedful.text.arborescence import best_heads, maximum_arborescence
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


def as_forest(heads: Ints) -> Ints:
    """Governors counted from 1 -> indices, a root its own."""
    return np.where(heads == 0, np.arange(len(heads)), heads - 1)


@given(scores(5))
def test_no_tree_of_a_few_words_is_better(values: Doubles) -> None:
    length = len(values)
    (heads,) = best_heads(values[None], np.array([length]))
    check_heads(as_forest(heads))
    best = -np.inf
    for choice in product(range(length + 1), repeat=length):
        try:
            check_heads(as_forest(np.array(choice)))
        except ValueError:
            continue
        if all(head != i + 1 for i, head in enumerate(choice)):
            best = max(best, total(values, np.array(choice)))
    assert total(values, heads) == pytest.approx(best)


@settings(max_examples=60)
@given(scores(24))
def test_networkx_finds_no_better_tree(values: Doubles) -> None:
    networkx = pytest.importorskip("networkx")  # of the development install
    length = len(values)
    (heads,) = best_heads(values[None], np.array([length]))
    check_heads(as_forest(heads))
    graph = networkx.DiGraph()
    for word in range(length):
        for head in range(length + 1):
            if head != word + 1:
                graph.add_edge(head, word + 1, weight=values[word, head])
    tree = networkx.maximum_spanning_arborescence(graph, preserve_attrs=True)
    expected = sum(data["weight"] for _, _, data in tree.edges(data=True))
    assert total(values, heads) == pytest.approx(expected)


def test_cycles_within_cycles_of_a_long_text() -> None:
    """Random scores of 256 words: greedy governors hold cycles, and contracting them makes others."""
    rng = np.random.default_rng(1)
    values = without_loops(rng.normal(size=(256, 257)))
    with pytest.raises(ValueError, match="cycle"):
        check_heads(as_forest(values.argmax(-1)))
    (heads,) = best_heads(values[None], np.array([256]))
    check_heads(as_forest(heads))
    assert total(values, heads) <= values.max(-1).sum()


@given(st.lists(scores(8), min_size=1, max_size=5), st.integers(0, 4))
def test_batching_and_padding_change_nothing(texts: list[Doubles], more: int) -> None:
    longest = max(map(len, texts)) + more
    batch = np.full((len(texts), longest, longest + 1), FAR)
    for row, values in enumerate(texts):
        batch[row, : len(values), : len(values) + 1] = values
    together = best_heads(batch, np.array([len(values) for values in texts]))
    for values, heads in zip(texts, together, strict=True):
        (alone,) = best_heads(values[None], np.array([len(values)]))
        assert heads[: len(values)].tolist() == alone.tolist()
        assert not heads[len(values) :].any()


def test_the_greedy_governors_stay_where_they_are_a_tree() -> None:
    values = np.array([[5.0, FAR, 1.0], [0.0, 3.0, FAR]])
    assert best_heads(values[None], np.array([2])).tolist() == [[0, 1]]
    assert maximum_arborescence(np.array([[0.0, 0.0], [1.0, 9.0]])).tolist() == [0, 0]
