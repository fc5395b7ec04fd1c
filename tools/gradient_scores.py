"""Completeness and spread of a bundle's integrated gradients on sentences of dev."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.progress import track

from heedful.runtime.bundles.card import GradientsCard
from heedful.runtime.explain.run import ExplainOptions
from heedful.training.tasks.base import Example, Task
from tools.local_model import LocalModel

COMPLETE = 0.05
"""A completeness error below it counts as complete."""


def gradient_scores(
    model: LocalModel, task: Task, examples: Sequence[Example], most: int
) -> GradientsCard:
    """Of at most `most` sentences, at even distances. Raises BadInput for a model without gradients."""
    found: list[Mapping[str, Any]] = []
    sides = len(examples[0].texts) if task.kind != "embedding" else 1
    places = np.linspace(0, len(examples) - 1, min(most // sides, len(examples)), dtype=int)
    for place in track(places.tolist(), "gradients", transient=True):
        explained = explain(model, task, examples[place], ExplainOptions(gradients=True))
        evidence = explained["evidence"]["sentences"]
        found += [one["gradients"] for one in evidence if one and one["gradients"]]
    errors = np.array([np.inf if one["error"] is None else one["error"] for one in found])
    pooled = [pooling(one) for one in found]
    known = [value for value in pooled if value is not None]
    return GradientsCard(
        sentences=len(found),
        median=float(np.median(errors)),
        p95=float(np.quantile(errors, 0.95)),
        complete=float((errors < COMPLETE).mean()),
        spread=float(np.quantile([one["spread"] for one in found], 0.95)),
        intervals=float(np.mean([one["intervals"] for one in found])),
        correlation=float(np.mean(known)) if known else None,
    )


def explain(
    model: LocalModel, task: Task, example: Example, options: ExplainOptions
) -> Mapping[str, Any]:
    """The answer of /explain: of a pair both sentences, but of a pair of an embedding model the first."""
    second = example.texts[1] if task.kind in ("nli", "relatedness") else None
    return model.loaded.explain(example.texts[0], second, options, truncate=True).answer


def pooling(attribution: Mapping[str, Any]) -> float | None:
    """The rank correlation of evidence or gradients with the attention that makes the sentence's vector."""
    correlations = attribution["correlations"]
    found: float | None = next(one["value"] for one in correlations if one["kind"] == "pooling")
    return found
