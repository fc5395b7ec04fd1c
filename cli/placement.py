"""Where a command finds its model and runs it: in this process, or on a Ray cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from heedful.cli.errors import CommandError
from heedful.library.load import bundle_folder, load
from heedful.library.model import Model
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import CARD, Card
from heedful.runtime.device import Device
from heedful.runtime.errors import StartupError
from heedful.runtime.model_registry import KINDS, Task, default_of, sentiment_of

ROWS_PER_FILE = 10_000


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray cluster, and how many models answer how many rows at a time there."""

    address: str = "local"
    actors: int | None = None
    rows_per_file: int = ROWS_PER_FILE


def cluster_of(
    ray: str | None,
    actors: int | None,
    rows_per_file: int | None,
    without_ray: Mapping[str, object],
    with_ray: Mapping[str, object] = MappingProxyType({}),
) -> Cluster | None:
    """The cluster of --ray; None without it. Raises CommandError for an option that does not go with that choice."""
    with_ray = {"--actors": actors, "--rows-per-file": rows_per_file, **with_ray}
    for option, value in (with_ray if ray is None else without_ray).items():
        if value:
            condition = "with" if ray is None else "without"
            raise CommandError(f"{option} has a meaning only {condition} --ray: leave it out")
    return None if ray is None else Cluster(ray, actors, rows_per_file or ROWS_PER_FILE)


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of bundles, their parser and the device."""

    models: Path
    parser: str | None = None
    device: Device = "auto"

    def folder(self, model: str | None, task: Task) -> Path:
        """The folder of the bundle `model`, a name or a folder; else of the task's default bundle."""
        return bundle_folder(model or default_name(self.models, task), self.models)

    def sentiment(self) -> str | None:
        """The name of the sentiment model that the service takes for labels of the user's; None without one."""
        return sentiment_of(_cards(self.models))

    def load(self, model: str | None, task: Task) -> Model:
        """Load the bundle that `folder` finds."""
        return load(self.folder(model, task), parser=self.parser, device=self.device)


def default_name(models: str | Path, task: Task) -> str:
    """The name of the bundle in `models` that the service would choose for a task.

    Raises StartupError if there is none, BundleError.
    """
    chosen = default_of(_cards(Path(models)), KINDS[task])
    if chosen is None:
        raise StartupError(f"no bundle in {models} does {task}: name another folder of bundles")
    return chosen.name


def _cards(models: Path) -> list[Card]:
    """The cards of a folder's bundles, by name."""
    return [read_card(card.parent) for card in sorted(models.glob(f"*/{CARD}"))]
