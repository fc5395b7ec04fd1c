"""Dependency trees for tests: `heads[i]` is the governor of token i, i itself for a root."""

import numpy as np
from hypothesis import strategies as st

from heedful.text.arrays import Ints


@st.composite
def forests(draw: st.DrawFn, longest: int = 24) -> Ints:
    """Any forest: the tokens in some order, each a root or hung under one that came before it.

    Half of them are deep: where the token above is any of those before, the depth grows as the logarithm.
    """
    order = draw(st.integers(1, longest).flatmap(lambda n: st.permutations(range(n))))
    back = 1 if draw(st.booleans()) else longest
    heads = np.zeros(len(order), np.int64)
    for i, token in enumerate(order):
        heads[token] = order[draw(st.integers(max(0, i - back), i))]
    return heads


def forest(rng: np.random.Generator, length: int, *, roots: float = 0.1) -> Ints:
    """As `forests`, from a seeded generator; `roots` is the chance of a token to be one."""
    order = rng.permutation(length)
    heads = np.zeros(length, np.int64)
    for i, token in enumerate(order):
        heads[token] = token if i == 0 or rng.random() < roots else order[rng.integers(i)]
    return heads


def chain(length: int) -> Ints:
    """The deepest tree there is: each token hangs under the one before it."""
    return np.maximum(np.arange(length) - 1, 0)


def star(length: int) -> Ints:
    """The flattest tree there is."""
    return np.zeros(length, np.int64)


BALLGAME = ["Two", "kids", "at", "a", "ballgame", "wash", "their", "hands"]
"""The paper's example (MS-SAN, Figure 3), with wash the root."""
BALLGAME_HEADS = np.array([1, 5, 4, 4, 1, 5, 7, 5])
