import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.arrays import Ints
from heedful.text.structure import check_heads, without
from tests.forests import chain, forests


@pytest.mark.parametrize("length", range(1, 41))
def test_a_chain_is_no_cycle_and_its_ends_meet_without_the_middle(length: int) -> None:
    heads = chain(length)
    check_heads(heads)
    left = [0] * min(length, 2)
    assert without(heads, np.arange(1, length - 1)).tolist() == left


@given(forests())
def test_every_forest_passes(heads: Ints) -> None:
    check_heads(heads)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=10))
def test_what_passes_is_a_forest_and_what_does_not_is_none(values: list[int]) -> None:
    heads = np.array([value % len(values) for value in values])

    def ends(token: int) -> bool:
        for _ in heads:
            token = int(heads[token])
        return bool(heads[token] == token)

    if all(map(ends, range(len(heads)))):
        check_heads(heads)
    else:
        with pytest.raises(ValueError, match="cycle"):
            check_heads(heads)


@pytest.mark.parametrize("heads", [[-1], [0, 2], [5, 0, 0]])
def test_heads_outside_the_sentence_are_refused(heads: list[int]) -> None:
    with pytest.raises(ValueError, match="a head lies outside"):
        check_heads(np.array(heads))


@given(forests(), st.data())
def test_without_some_tokens_each_hangs_under_the_nearest_that_is_left(
    heads: Ints, data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.integers(0, len(heads) - 1), max_size=len(heads) - 1))
    left = [i for i in range(len(heads)) if i not in gone]
    expected = []
    for token in left:
        head = int(heads[token])
        while head in gone and heads[head] != head:
            head = int(heads[head])
        expected.append(left.index(token if head in gone else head))
    assert without(heads, np.array(sorted(gone), np.int64)).tolist() == expected


def test_no_token_is_a_forest() -> None:
    check_heads(np.array([], np.int64))
