"""Batches of similar lengths, for work whose batches have no fixed cost; `text.batch.cheapest` plans a service's."""

from collections.abc import Sequence


def plan(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group indices into batches of similar lengths, each of at most `budget` cells once padded.

    A sentence longer than the budget is a batch by itself.
    """
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        # In ascending order: this sentence is the longest of its batch, and sets its width.
        if groups and (len(groups[-1]) + 1) * lengths[index] <= budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups
