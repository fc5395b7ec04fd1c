"""Training on a user's texts and the export of the bundle, for `distill` and `tune`."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from heedful.cli.options import command_line
from heedful.export.bundle_writer import rewrite
from heedful.export.run import export_smallest
from heedful.runtime.bundles.card import Card
from heedful.text.parse import Parser
from heedful.training.config import CACHE, Paths, RunConfig
from heedful.training.loop import train
from heedful.training.optimise import enough_memory
from heedful.training.tasks.base import Task


def run_key(*parts: str) -> str:
    """A name for the run, equal where all parts are: the same command continues the run of that name."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class UserRun:
    """The task, the bundle to write, the folder of the runs, and the spaCy pipeline that reads the texts."""

    task: Task
    out: Path
    runs: Path
    parser: str | None
    console: Console

    def train(self, config: RunConfig, run: Path) -> None:
        """Train in the folder `run`, or go on there. Raises what `train` raises."""
        paths = Paths(run, self.runs, self.parser, CACHE, Path(self.out.name))
        with enough_memory(paths.config):
            train(config, paths, resume=True, console=self.console, task=self.task)

    def export(self, run: Path) -> Card:
        """Write the bundle of a run. Raises ExportError, BundleError."""
        return export_smallest(
            run,
            self.out,
            data=self.runs,
            parser=Parser.load(self.parser),
            say=self.console.print,
            task=self.task,
        )

    def describe(self, card: Card, fields: dict[str, Any]) -> Card:
        """Write the bundle's card again, with these fields and the command line."""
        training = card.training.model_copy(update={"command": command_line()})
        new_fields = card.fields() | fields | {"training": training}
        return rewrite(self.out, new_fields, {name: self.out / name for name in card.files})
