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
    """The scores of at most `most` sentences, evenly spaced. Raises BadInput for a model without gradients."""
    gradients: list[Mapping[str, Any]] = []
    sides = len(examples[0].texts) if task.kind != "embedding" else 1
    places = np.linspace(0, len(examples) - 1, min(most // sides, len(examples)), dtype=int)
    for place in track(places.tolist(), "gradients", transient=True):
        explained = explain(model, task, examples[place], ExplainOptions(gradients=True))
        evidence = explained["evidence"]["sentences"]
        gradients += [each["gradients"] for each in evidence if each and each["gradients"]]
    errors = np.array([np.inf if each["error"] is None else each["error"] for each in gradients])
    pooled = [pooling(each) for each in gradients]
    known = [value for value in pooled if value is not None]
    return GradientsCard(
        sentences=len(gradients),
        median=float(np.median(errors)),
        p95=float(np.quantile(errors, 0.95)),
        complete=float((errors < COMPLETE).mean()),
        spread=float(np.quantile([each["spread"] for each in gradients], 0.95)),
        intervals=float(np.mean([each["intervals"] for each in gradients])),
        correlation=float(np.mean(known)) if known else None,
    )


def explain(
    model: LocalModel, task: Task, example: Example, options: ExplainOptions
) -> Mapping[str, Any]:
    """The answer of /explain for both sentences of a pair; for an embedding model, for the first."""
    second = example.texts[1] if task.kind in ("nli", "relatedness") else None
    return model.loaded.explain(example.texts[0], second, options, truncate=True).answer


def pooling(attribution: Mapping[str, Any]) -> float | None:
    """The rank correlation of evidence or gradients with the attention of the pooling."""
    correlations = attribution["correlations"]
    value: float | None = next(each["value"] for each in correlations if each["kind"] == "pooling")
    return value
