"""Measure a changed bundle, and replace the old one unless its score falls too much."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from heedful.cli.local_model import LocalModel, open_folder
from heedful.export.bundle_writer import rewrite, write
from heedful.export.errors import ExportError
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import Card
from heedful.training import tasks
from heedful.training.errors import ConfigError
from heedful.training.evaluate import Score, measure
from heedful.training.tasks.base import Task


def task_of(bundle: Bundle, name: str | None) -> Task:
    """The task to score it on, by default the card's. Raises ConfigError for one of another kind."""
    chosen = tasks.get(name or bundle.card.task)
    if chosen.kind != bundle.card.kind:
        raise ConfigError(
            f"task {chosen.name} is of kind {chosen.kind}, {bundle.card.name} of kind "
            f"{bundle.card.kind}"
        )
    return chosen


def scores(bundle: Bundle, task: Task, data: Path, model: LocalModel) -> list[Score]:
    """Measure dev, and test too if the card has a score of it."""
    found = measure(task, "dev", data, model)
    if task.test.name in {score.dataset for score in bundle.card.scores if score.split == "test"}:
        found += measure(task, "test", data, model)
    return found


def merge_scores(card: Card, measured: Sequence[Score]) -> list[dict[str, Any]]:
    """The card's scores, with `measured` replacing those of the same split and metric."""
    same = ("dataset", "split", "metric")
    every = [*card.fields()["scores"], *(score.as_dict() for score in measured)]
    return list({tuple(one[key] for key in same): one for one in every}.values())


def replace(
    bundle: Bundle,
    fields: Mapping[str, Any],
    files: Mapping[str, bytes],
    *,
    parsers: tuple[str, str],
    data: Path,
    max_loss: float,
    kept: str,
    console: Console,
) -> Card:
    """Replace the bundle by one of other fields and files, whose scores are measured.

    `parsers` are the old bundle's and the new one's. Raises ExportError, which begins with the
    bundle's name and `kept`, and leaves the bundle unchanged, if its dev score falls by more than
    `max_loss`; ConfigError, DataMissing.
    """
    name, task = bundle.folder.name, task_of(bundle, None)
    with open_folder(bundle.folder, parsers[0]) as model:
        before = measure(task, "dev", data, model)[0]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name, fields, files)
        with open_folder(Path(folder) / name, parsers[1]) as model:
            found = scores(bundle, task, data, model)
    after = found[0]
    console.print(
        f"{name}: {after.metric} on {after.dataset} dev {before.value:.4f} -> {after.value:.4f}"
    )
    if before.value - after.value > max_loss:
        raise ExportError(
            f"{name} {kept} its {after.metric} on {after.dataset} dev falls by "
            f"{before.value - after.value:.4f} (at most {max_loss})"
        )
    return rewrite(bundle.folder, {**fields, "scores": merge_scores(bundle.card, found)}, files)
