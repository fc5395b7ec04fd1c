"""The arc parser as loops: one word, one pair of words and one number at a time, in float64.

Weights go by the names of the torch module's parameters. A sentence is a list of words, a word a list of
rows, four of each of four tables.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tests.reference.arithmetic import Array, each, layer_norm, relu

Weights = Mapping[str, Array]

DILATIONS = (1, 1, 2, 4)


def word_vector(w: Weights, rows: Sequence[int]) -> Array:
    """Maxout of the joined sums of rows, normed."""
    joined: list[float] = []
    for table in range(4):
        rows_of = rows[4 * table : 4 * table + 4]
        joined += list(sum(w[f"words.tables.{table}.weight"][row] for row in rows_of))
    mixed = w["words.mix.weight"] @ np.array(joined) + w["words.mix.bias"]
    width = len(mixed) // 2
    best = np.array([max(mixed[i], mixed[width + i]) for i in range(width)])
    return layer_norm(best, w["words.norm.weight"], w["words.norm.bias"])


def read(w: Weights, sentence: Sequence[Sequence[int]]) -> list[Array]:
    """The words' vectors after all windows."""
    x = [word_vector(w, rows) for rows in sentence]
    none = np.zeros(len(x[0]))
    for layer, d in enumerate(DILATIONS):
        after = []
        for i in range(len(x)):
            left = x[i - d] if i - d >= 0 else none
            right = x[i + d] if i + d < len(x) else none
            around = np.concatenate([left, x[i], right])
            name = f"windows.{layer}"
            mixed = w[f"{name}.mix.weight"] @ around + w[f"{name}.mix.bias"]
            positive = each(relu, mixed)
            after.append(
                x[i] + layer_norm(positive, w[f"{name}.norm.weight"], w[f"{name}.norm.bias"])
            )
        x = after
    return x


def rotated(x: Array, place: int) -> Array:
    """Pair p of x, (x[p], x[P + p]), rotated by place / 64^(p / (P - 1)) radians."""
    pairs = len(x) // 2
    found = np.zeros(len(x))
    for p in range(pairs):
        angle = place / 64 ** (p / (pairs - 1))
        a, b = x[p], x[pairs + p]
        found[p] = a * math.cos(angle) - b * math.sin(angle)
        found[pairs + p] = a * math.sin(angle) + b * math.cos(angle)
    return found


def arcs(w: Weights, x: Sequence[Array], arc: int) -> Array:
    """(L, 1 + L): of each word the root, then every other word; -inf for itself."""
    scores = np.full((len(x), 1 + len(x)), -np.inf)
    for i, dependent in enumerate(x):
        scores[i, 0] = w["root.weight"][0] @ dependent + w["root.bias"][0]
        asked = w["dependent.weight"] @ dependent + w["dependent.bias"]
        for j, governor in enumerate(x):
            if i == j:
                continue
            given = w["governor.weight"] @ governor
            product = asked[:arc] @ given[:arc] + rotated(asked[arc:], i) @ rotated(given[arc:], j)
            prior = w["prior.weight"][0] @ governor
            scores[i, 1 + j] = product / math.sqrt(len(asked)) + prior
    return scores


def relation(w: Weights, dependent: Array, governor: Array) -> Array:
    """(R,): scores of the relations between two words."""
    hidden = (
        w["relation_dependent.weight"] @ dependent
        + w["relation_dependent.bias"]
        + w["relation_governor.weight"] @ governor
    )
    positive = each(relu, hidden)
    scores: Array = w["relation_out.weight"] @ positive + w["relation_out.bias"]
    return scores
