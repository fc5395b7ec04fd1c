"""Dependency heads: a check that they are a forest, and the forest without some tokens."""

import numpy as np
import numpy.typing as npt

from heedful.text.arrays import Ints

Heads = npt.NDArray[np.integer]


def check_heads(heads: Heads) -> None:
    """Raise ValueError unless `heads` (L,) is a forest.

    In a forest all walks upwards end at a token that is its own head.
    """
    length = len(heads)
    if length and (heads.min() < 0 or heads.max() >= length):
        raise ValueError(f"a head lies outside 0..{length - 1}")
    top = heads
    for _ in range(length.bit_length()):  # pointer doubling: 2^k steps up after k rounds
        top = top[top]
    if not np.array_equal(heads[top], top):
        raise ValueError("the heads hold a cycle")


def without(heads: Heads, remains: npt.NDArray[np.bool_]) -> Ints:
    """The forest of the tokens that remain.

    A token depends on its nearest remaining ancestor, or becomes a root if it has none.
    """
    ancestors = np.where(remains, np.arange(len(heads)), heads)
    for _ in range(len(heads).bit_length()):  # from a removed token up to one that remains
        ancestors = ancestors[ancestors]
    index = np.where(remains, np.cumsum(remains) - 1, -1)
    governors = index[ancestors[heads[remains]]]
    return np.where(governors < 0, np.arange(len(governors)), governors)
