"""Completeness and spread of a bundle's integrated gradients on sentences of dev, into its card."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from heedful.cli.errors import CommandError
from heedful.cli.local_model import LocalModel, open_folder
from heedful.export.bundle_writer import rewrite, write
from heedful.export.word_scale import scalable
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.bundles.card import EXPLAIN, EXPLAIN_INT8, GOLDEN, Card, GradientsCard
from heedful.runtime.explain.run import ExplainOptions
from heedful.training.tasks.base import Example, Task
from tools.bundle_task import task_of

SENTENCES = 200
COMPLETE = 0.05


def measure_gradients(folder: Path, parser: str, *, data: Path, sentences: int = SENTENCES) -> Card:
    """Measure integrated gradients and write the figures into the card, in place.

    Where explain.onnx cannot scale word vectors yet, it can afterwards; every other file stays as it is, and
    the golden vectors, but for the hashes that they name. Raises BundleError, CommandError, ConfigError,
    DataMissing, ExportError.
    """
    bundle = read(folder)
    if bundle.card.trust is None:
        raise CommandError(
            f"{folder} has no measured controls: run `python -m tools trust` on it first"
        )
    task = task_of(bundle)
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary) / folder.resolve().name
        card = write(made, bundle.card.fields(), _scalable(bundle))
        files = read(made).files
        with open_folder(made, parser) as model:
            figures = _figures(model, task, task.dev.read(data), sentences)
    fields = card.fields()
    fields["trust"]["gradients"] = figures
    return rewrite(folder, fields, files)


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


def _scalable(bundle: Bundle) -> Mapping[str, bytes]:
    """The bundle's files, with explain graphs that can scale word vectors."""
    names = [name for name in (EXPLAIN, EXPLAIN_INT8) if name in bundle.files]
    graphs = {name: scalable(bundle.files[name]) for name in names}
    files = {**bundle.files, **graphs}
    if bundle.golden is not None:
        hashes = {name: sha256(graphs[name]).hexdigest() for name in names}
        golden = replace(bundle.golden, files={**bundle.golden.files, **hashes})
        files[GOLDEN] = golden.to_bytes()
    return files


def _figures(
    model: LocalModel, task: Task, examples: Sequence[Example], most: int
) -> dict[str, Any]:
    """GradientsCard's fields."""
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
    ).model_dump()
