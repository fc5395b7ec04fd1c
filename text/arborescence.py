"""Scores of governors -> the maximum spanning tree (Chu and Liu 1965, Edmonds 1967).

Node 0 is a virtual root, node i > 0 the word i. An arborescence gives every word one governor, so that
every walk upwards ends at the root. Several words may hang under the root: each sentence of a text has its own tree.
"""

from collections.abc import Sequence

import numpy as np

from heedful.text.arrays import AnyFloats, Ints


def best_heads(scores: AnyFloats, lengths: Ints) -> Ints:
    """Scores (B, L, 1 + L) [word, governor], lengths (B,) -> governors (B, L), 0 for the root.

    The governors of a sentence have the greatest sum of scores that an arborescence can have. Where the best governor
    of each word makes no cycle, which is nearly always, these are they. On padding governors are 0.
    """
    L = scores.shape[1]
    words = np.arange(L) < lengths[:, None]
    heads = np.where(words, scores.argmax(-1), 0)
    for row, n in enumerate(lengths.tolist()):
        tree = [0, *heads[row, :n].tolist()]
        values = scores[row, :n, : n + 1]
        if not _opened(values, tree):
            tree = maximum_arborescence(np.vstack([np.full(n + 1, -np.inf), values])).tolist()
        heads[row, :n] = tree[1:]
    return heads


def _opened(scores: AnyFloats, heads: list[int]) -> bool:
    """Open the cycles of `heads` (1 + L), in place, where that can be done one by one; else False.

    The best arc into a cycle takes the place of one of its arcs. Where the root is above that arc without
    the cycle between, contracting the cycle would have found nothing else, and nearly always that is so.
    """
    while cycle := _cycle(heads):
        words = [node - 1 for node in cycle]
        into = scores[words] - scores[words, [heads[node] for node in cycle]][:, None]
        into[:, cycle] = -np.inf
        entered, node = divmod(int(into.argmax()), len(heads))
        heads[cycle[entered]] = node
        inside = set(cycle)
        for _ in range(len(heads)):
            if node in inside:
                return False
            node = heads[node]
        if node:  # around in another cycle
            return False
    return True


def maximum_arborescence(scores: AnyFloats) -> Ints:
    """Scores (n, n) [node, governor] -> governors (n,) of greatest sum; node 0, the root, governs itself.

    Takes every node's best governor and, while that leaves a cycle, contracts the cycle to one node.
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
    # An arc into the cycle is worth what it adds to the one that it takes the place of.
    of_rest = scores[rest]
    into = scores[cycle][:, rest] - scores[cycle, heads[cycle]][:, None]
    out_of = of_rest[:, cycle]
    contracted = np.full((len(rest) + 1, len(rest) + 1), -np.inf)
    contracted[:-1, :-1] = of_rest[:, rest]
    contracted[-1, :-1], contracted[:-1, -1] = into.max(axis=0), out_of.max(axis=1)
    solution = maximum_arborescence(contracted)
    from_cycle = solution[:-1] == len(rest)
    governors = rest[np.where(from_cycle, 0, solution[:-1])]
    heads[rest] = np.where(from_cycle, np.array(cycle)[out_of.argmax(axis=1)], governors)
    heads[cycle[into[:, solution[-1]].argmax()]] = rest[solution[-1]]
    return heads


def _cycle(heads: Sequence[int]) -> list[int]:
    """The nodes of one cycle that does not hold the root; none where there is none."""
    walks = [0] * len(heads)  # the walk that came through each node, by where it began
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
