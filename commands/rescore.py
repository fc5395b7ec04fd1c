"""A bundle measured anew: what its card then says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runtime.bundle import Bundle
from training import tasks
from training.errors import ConfigError
from training.evaluate import Score, Server, measure
from training.tasks.base import Task


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
