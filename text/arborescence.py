"""Scores of governors -> the maximum spanning tree (Chu and Liu 1965, Edmonds 1967).

Node 0 is a virtual root, node i > 0 is word i. An arborescence gives each word a governor, and all walks upwards end at
the root. Several words may depend on the root: each sentence of a text has a tree.
"""

from collections.abc import Sequence

import numpy as np

from heedful.text.arrays import AnyFloats, Ints


def best_heads(scores: AnyFloats, lengths: Ints) -> Ints:
    """Scores (B, L, 1 + L) [word, governor], lengths (B,) -> governors (B, L), 0 for the root.

    The governors of a sentence have the greatest sum of scores of all arborescences. They are the best governors of all
    words where these make no cycle, which is nearly always. On padding governors are 0.
    """
    L = scores.shape[1]
    words = np.arange(L) < lengths[:, None]
    heads = np.where(words, scores.argmax(-1), 0)
    for row, n in enumerate(lengths.tolist()):
        tree = [0, *heads[row, :n].tolist()]
        values = scores[row, :n, : n + 1]
        if not _break_cycles(values, tree):
            tree = maximum_arborescence(np.vstack([np.full(n + 1, -np.inf), values])).tolist()
        heads[row, :n] = tree[1:]
    return heads


def _break_cycles(scores: AnyFloats, heads: list[int]) -> bool:
    """Break the cycles of `heads` (1 + L) one by one, in place. False where that is not possible.

    The best arc into a cycle replaces an arc of the cycle. Where the walk from the new governor leads to the root
    without the cycle, contracting the cycle would have the same result, and nearly always it does.
    """
    while cycle := _cycle(heads):
        words = [node - 1 for node in cycle]
        gains = scores[words] - scores[words, [heads[node] for node in cycle]][:, None]
        gains[:, cycle] = -np.inf
        place, node = divmod(int(gains.argmax()), len(heads))
        heads[cycle[place]] = node
        in_cycle = set(cycle)
        for _ in range(len(heads)):
            if node in in_cycle:
                return False
            node = heads[node]
        if node:  # the walk is in another cycle
            return False
    return True


def maximum_arborescence(scores: AnyFloats) -> Ints:
    """Scores (n, n) [node, governor] -> governors (n,) of greatest sum; node 0, the root, governs itself.

    Takes each node's best governor and, while there is a cycle, contracts it to a node.
    """
    scores = scores.copy()
    np.fill_diagonal(scores, -np.inf)
    heads: Ints = scores.argmax(axis=1)
    heads[0] = 0
    cycle = _cycle(heads.tolist())
    if not cycle:
        return heads
    outside = np.ones(len(scores), bool)
    outside[cycle] = False
    rest = np.flatnonzero(outside)  # the root first
    # The score of an arc into the cycle is its gain over the arc that it replaces.
    rest_scores = scores[rest]
    into_cycle = scores[cycle][:, rest] - scores[cycle, heads[cycle]][:, None]
    from_cycle = rest_scores[:, cycle]
    contracted = np.full((len(rest) + 1, len(rest) + 1), -np.inf)
    contracted[:-1, :-1] = rest_scores[:, rest]
    contracted[-1, :-1], contracted[:-1, -1] = into_cycle.max(axis=0), from_cycle.max(axis=1)
    solution = maximum_arborescence(contracted)
    under_cycle = solution[:-1] == len(rest)
    governors = rest[np.where(under_cycle, 0, solution[:-1])]
    heads[rest] = np.where(under_cycle, np.array(cycle)[from_cycle.argmax(axis=1)], governors)
    heads[cycle[into_cycle[:, solution[-1]].argmax()]] = rest[solution[-1]]
    return heads


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
