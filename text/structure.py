"""Dependency heads: whether they are a forest, and what remains of one without some tokens."""

import numpy as np
import numpy.typing as npt

from heedful.text.arrays import Ints

Heads = npt.NDArray[np.integer]


def check_heads(heads: Heads) -> None:
    """Raise ValueError unless `heads` (L,) is a forest.

    In a forest every walk upwards ends at a token that heads itself.
    """
    length = len(heads)
    if length and (heads.min() < 0 or heads.max() >= length):
        raise ValueError(f"a head lies outside 0..{length - 1}")
    top = heads
    for _ in range(length.bit_length()):  # pointer doubling: 2^k steps up after k rounds
        top = top[top]
    if not np.array_equal(heads[top], top):
        raise ValueError("the heads hold a cycle")


def without(heads: Heads, gone: npt.NDArray[np.integer]) -> Ints:
    """The forest that remains when the tokens at `gone` are removed.

    A token hangs under its nearest remaining ancestor, or becomes a root where there is none.
    """
    kept = np.ones(len(heads), bool)
    kept[gone] = False
    above = np.where(kept, np.arange(len(heads)), heads)
    for _ in range(len(heads).bit_length()):  # from a removed token up to one that remains
        above = above[above]
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    governors = place[above[heads[kept]]]
    return np.where(governors < 0, np.arange(len(governors)), governors)
