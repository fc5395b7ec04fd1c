"""Scores of governors -> the maximum spanning tree (Chu and Liu 1965, Edmonds 1967).

Node 0 is a virtual root, node i > 0 is word i. An arborescence gives each word a governor, and all walks upwards end at
the root. Several words may depend on the root: each sentence of a text has a tree.
"""

from collections.abc import Sequence

import numpy as np

from heedful.text.arrays import AnyFloats, Ints


def best_heads(scores: AnyFloats, lengths: Ints) -> Ints:
    """Scores (B, L, 1 + L) [word, governor], lengths (B,) -> governors (B, L), 0 for the root.

    The governors of a sentence have the greatest sum of scores of all arborescences. On padding governors are 0. No
    word's best governor may be the word itself.
    """
    heads = np.zeros(scores.shape[:2], np.int64)
    for row, n in enumerate(lengths.tolist()):
        values = np.full((n + 1, n + 1), -np.inf, scores.dtype)  # the root has no governor
        values[1:] = scores[row, :n, : n + 1]
        heads[row, :n] = _maximum_arborescence(values)[1:]
    return heads


def _maximum_arborescence(scores: AnyFloats) -> Ints:
    """Scores (n, n) [node, governor] -> governors (n,) of greatest sum; node 0, the root, governs itself.

    Takes each node's best governor and, while there is a cycle, contracts it to its first node: the others govern none.
    """
    heads: Ints = scores.argmax(axis=1)
    cycle = _cycle(heads.tolist())
    if not cycle:
        return heads
    # The score of an arc into the cycle is its gain over the arc that it replaces.
    into_cycle = scores[cycle] - scores[cycle, heads[cycle]][:, None]
    into_cycle[:, cycle] = -np.inf
    from_cycle = scores[:, cycle]
    contracted = scores.copy()
    contracted[:, cycle] = -np.inf
    contracted[:, cycle[0]] = from_cycle.max(axis=1)
    contracted[cycle[0]] = into_cycle.max(axis=0)
    solution = _maximum_arborescence(contracted)
    governor = solution[cycle[0]]
    under_cycle = solution == cycle[0]
    solution[under_cycle] = np.array(cycle)[from_cycle[under_cycle].argmax(axis=1)]
    solution[cycle] = heads[cycle]
    solution[cycle[into_cycle[:, governor].argmax()]] = governor
    return solution


def _cycle(heads: Sequence[int]) -> list[int]:
    """The nodes of a cycle without the root; [] if there is none."""
    walks = [0] * len(heads)  # the first walk through each node, by the node where it began
    walks[0] = -1
    for start in range(1, len(heads)):
        node = start
        while not walks[node]:
            walks[node] = start
            node = heads[node]
        if walks[node] == start:
            cycle = [node]
            while (node := heads[node]) != cycle[0]:
                cycle.append(node)
            return cycle
    return []
