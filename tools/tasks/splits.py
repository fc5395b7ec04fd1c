"""Seeded splits: a dev split for a dataset without one."""

from collections.abc import Hashable, Sequence

import numpy as np

from heedful.training.tasks.base import Example

SEED = 1


def stratified_split(
    examples: Sequence[Example],
    shares: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = SEED,
) -> list[list[Example]]:
    """Split into parts of these shares and one of the rest, stratified by label.

    Examples of one group (N values, one per example) stay together, under the label of the first.
    Each part keeps the order of `examples`.
    """
    keys: Sequence[Hashable] = range(len(examples)) if groups is None else groups
    label_of: dict[Hashable, float] = {}
    for key, example in zip(keys, examples, strict=True):
        label_of.setdefault(key, example.label)
    strata: dict[float, list[Hashable]] = {}
    for key, label in label_of.items():
        strata.setdefault(label, []).append(key)

    rng = np.random.default_rng(seed)
    part_of: dict[Hashable, int] = {}
    for label in sorted(strata):
        ends = np.rint(np.cumsum(shares) * len(strata[label]))
        places = rng.permutation(len(strata[label]))
        parts = np.searchsorted(ends, places, side="right").tolist()
        part_of.update(zip(strata[label], parts, strict=True))
    split: list[list[Example]] = [[] for _ in range(len(shares) + 1)]
    for key, example in zip(keys, examples, strict=True):
        split[part_of[key]].append(example)
    return split
