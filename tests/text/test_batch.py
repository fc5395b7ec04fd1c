import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.arrays import Ints
from heedful.text.batch import PAD, Sentence, cheapest, collate
from heedful.text.pieces import Lexicon
from heedful.text.structure import without
from heedful.text.vocab import Vocab
from tests.builders import build_pieces
from tests.forests import forest, forests
from tools.batches import plan

lengths = st.lists(st.integers(1, 60), min_size=1, max_size=40)


@given(lengths, st.integers(0, 2**32))
def test_a_batch_holds_each_sentence_and_padding(sizes: list[int], seed: int) -> None:
    """And its rows are a batch of these sentences."""
    rng = np.random.default_rng(seed)
    sentences = [Sentence(rng.integers(1, 100, size), forest(rng, size)) for size in sizes]
    batch, longest = collate(sentences), max(sizes)
    assert batch.ids.shape == batch.heads.shape == (len(sizes), longest)
    assert batch.ids.dtype == batch.heads.dtype == batch.lengths.dtype == np.int64
    assert batch.lengths.tolist() == sizes
    for row, sentence in enumerate(sentences):
        assert batch.ids[row].tolist() == [*sentence.ids, *[PAD] * (longest - len(sentence))]
        assert batch.heads[row].tolist() == [*sentence.heads, *range(len(sentence), longest)]
    chosen = rng.permutation(len(sizes))[: rng.integers(1, len(sizes), endpoint=True)]
    rows, expected = batch.rows(chosen), collate([sentences[i] for i in chosen])
    for name in ("ids", "heads", "lengths"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(expected, name))


@given(lengths, st.integers(1, 400))
def test_a_plan_serves_each_once_and_fills_its_groups_with_like_lengths(
    sizes: list[int], budget: int
) -> None:
    groups = plan(sizes, budget)
    assert sorted(index for group in groups for index in group) == list(range(len(sizes)))
    for group in groups:
        cells = len(group) * max(sizes[index] for index in group)
        assert cells <= budget or len(group) == 1
    ordered = [sizes[index] for group in groups for index in group]
    assert ordered == sorted(sizes)
    for group, following in itertools.pairwise(groups):
        assert (len(group) + 1) * sizes[following[0]] > budget  # one more would not have fitted


def divisions(ordered: list[int]) -> Iterator[list[list[int]]]:
    """Every way to cut a list into parts."""
    for cuts in itertools.product([False, True], repeat=len(ordered) - 1):
        parts = [[ordered[0]]]
        for value, cut in zip(ordered[1:], cuts, strict=True):
            parts.append([value]) if cut else parts[-1].append(value)
        yield parts


@given(st.lists(st.integers(1, 20), min_size=1, max_size=9), st.integers(1, 90), st.integers(0, 30))
def test_the_cheapest_plan_is_the_cheapest_of_all(
    sizes: list[int], budget: int, overhead: int
) -> None:
    def cost(parts: list[list[int]]) -> int:
        return sum(overhead + len(part) * max(part) for part in parts)

    def fits(parts: list[list[int]]) -> bool:
        return all(len(part) * max(part) <= budget or len(part) == 1 for part in parts)

    groups = cheapest(sizes, budget, overhead)
    assert sorted(index for group in groups for index in group) == list(range(len(sizes)))
    planned = [[sizes[index] for index in group] for group in groups]
    assert [size for part in planned for size in part] == sorted(sizes)
    assert fits(planned)
    least = min(cost(parts) for parts in divisions(sorted(sizes)) if fits(parts))
    # Sentences of one length are parted only where the budget asks for it, and into full parts.
    assert cost(planned) <= least + overhead
    if sum(sizes) * len(sizes) <= budget:
        assert cost(planned) == least


def test_the_key_tells_words_and_trees_apart() -> None:
    ids, heads = np.array([3, 4, 5]), np.array([0, 0, 1])
    same = Sentence(ids, heads), Sentence(ids.copy(), heads.copy())
    others = [
        *(Sentence(ids[::-1].copy(), heads), Sentence(ids, np.array([0, 0, 0]))),
        *(Sentence(ids[:2], heads[:2]), Sentence(heads, ids)),
        *(Sentence(ids, heads[:2], np.array(pieces)) for pieces in ([1, 2], [2, 1])),
    ]
    assert len({other.key for other in (*same, *others)}) == 1 + len(others)


@pytest.mark.parametrize(
    "vocab", [Vocab(["two", "kids"], composed=50), build_pieces()], ids=["words", "pieces"]
)
@given(forests(8), st.data())
def test_a_sentence_without_words_is_that_of_the_words_that_are_left(
    vocab: Lexicon, heads: Ints, data: st.DataObject
) -> None:
    n = len(heads)
    words = data.draw(
        st.lists(st.sampled_from(["Two", "kids", "ballgame", "xyz"]), min_size=n, max_size=n)
    )
    gone = sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1)))
    left = [word for i, word in enumerate(words) if i not in gone]
    expected: Any = vocab.sentence(left, without(heads, ~np.isin(np.arange(n), gone)))
    actual: Any = vocab.sentence(words, heads).without(gone)
    for name in ("heads", "pieces"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name))
    np.testing.assert_array_equal(np.maximum(actual.ids, -1), np.maximum(expected.ids, -1))
    for one, other in zip(actual.ids, expected.ids, strict=True):
        if other < 0:  # a composed word has its features, in whatever row
            np.testing.assert_array_equal(actual.features[-1 - one], expected.features[-1 - other])
