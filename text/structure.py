"""Dependency heads -> tree distances. Pure functions over numpy arrays.

The serving graph computes the same distances itself (`models.masks.tree_distance`); these functions check
training data and are the reference for the tests of that graph.
"""

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


def ancestors(heads: Heads) -> npt.NDArray[np.bool_]:
    """(L, L) boolean: [i, k] is True where k is i itself or an ancestor of it."""
    length = len(heads)
    above = np.eye(length, dtype=bool)
    node: Heads = np.arange(length)
    for _ in range(length):
        node = heads[node]
        above[np.arange(length), node] = True
    return above


def tree_distance(heads: Heads) -> Ints:
    """Edges between each two tokens on the dependency tree, (L, L).

    Several roots hang under one virtual root, and a path between two trees counts the edges through it,
    so that every distance is finite (docs/models.md, MS-SAN).
    """
    above = ancestors(heads).astype(np.int64)
    depth = above.sum(axis=1)  # edges up to the virtual root
    shared = above @ above.T  # common ancestors, the tokens themselves included
    distance: Ints = depth[:, None] + depth[None, :] - 2 * shared
    return distance


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
