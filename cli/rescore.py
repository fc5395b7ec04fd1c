"""A bundle measured anew: what its card then says."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from heedful.cli.serving import server
from heedful.export.errors import ExportError
from heedful.runtime.bundle import Bundle, write
from heedful.runtime.card import Card
from heedful.training import tasks
from heedful.training.errors import ConfigError
from heedful.training.evaluate import Score, Server, measure
from heedful.training.tasks.base import Task


def task_of(bundle: Bundle, name: str | None) -> Task:
    """The task to measure it on, by default the card's. Raises ConfigError for one of another kind."""
    chosen = tasks.get(name or bundle.card.task)
    if chosen.kind != bundle.card.kind:
        raise ConfigError(
            f"task {chosen.name} is of kind {chosen.kind}, {bundle.card.name} of kind "
            f"{bundle.card.kind}"
        )
    return chosen


def scores(bundle: Bundle, task: Task, data: Path, served: Server) -> list[Score]:
    """Of dev, and of test where the card has a score of that: then it is measured anew, once."""
    found = measure(task, "dev", data, served)
    if task.test.name in {score.dataset for score in bundle.card.scores if score.split == "test"}:
        found += measure(task, "test", data, served)
    return found


def merged(bundle: Bundle, measured: Sequence[Score]) -> list[dict[str, Any]]:
    """The card's scores, with what was measured in the place of those of the same split."""
    same = ("dataset", "split", "metric")
    every = [*fields(bundle)["scores"], *(score.as_dict() for score in measured)]
    return list({tuple(one[key] for key in same): one for one in every}.values())


def fields(bundle: Bundle) -> dict[str, Any]:
    """Those of the card that `bundle.write` does not make."""
    return bundle.card.model_dump(exclude={"format", "name", "version", "files"})


def replace(
    bundle: Bundle,
    fields: Mapping[str, Any],
    files: Mapping[str, bytes],
    *,
    parsers: tuple[str, str],
    data: Path,
    most_lost: float,
    kept: str,
    console: Console,
) -> Card:
    """Write the bundle with other fields and files, in place; its card's scores are measured anew.

    `parsers`: the one that it reads now, and then. Raises ExportError, which begins with the bundle's name
    and `kept`, and leaves the bundle as it was, where its dev score falls by more than `most_lost`;
    ConfigError, DataMissing.
    """
    name, task = bundle.folder.name, task_of(bundle, None)
    with server(str(bundle.folder), url="", parser=parsers[0]) as served:
        was = measure(task, "dev", data, served)[0]
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / name
        write(new, fields, files)
        with server(str(new), url="", parser=parsers[1]) as served:
            found = scores(bundle, task, data, served)
    now = found[0]
    console.print(f"{name}: {was.metric} on {was.dataset} dev {was.value:.4f} -> {now.value:.4f}")
    if was.value - now.value > most_lost:
        raise ExportError(
            f"{name} {kept} its {was.metric} on {was.dataset} dev falls by "
            f"{was.value - now.value:.4f} (at most {most_lost})"
        )
    return write(bundle.folder, {**fields, "scores": merged(bundle, found)}, files)
