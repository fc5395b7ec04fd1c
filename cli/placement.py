"""Where a command's model is and runs: in this process, or on a Ray cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from heedful.cli.errors import CommandError
from heedful.library.load import bundle_folder, load
from heedful.library.model import Model
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import CARD
from heedful.runtime.device import Device
from heedful.runtime.errors import StartupError
from heedful.runtime.model_registry import KINDS, Task, default_of, is_sentiment

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
    """What the options of Ray say; None where no cluster runs. Raises CommandError for an option of the other way."""
    ours = {"--actors": actors, "--rows-per-file": rows_per_file, **with_ray}
    for option, given in (ours if ray is None else without_ray).items():
        if given:
            said = "with" if ray is None else "without"
            raise CommandError(f"{option} has a meaning only {said} --ray: leave it out")
    return None if ray is None else Cluster(ray, actors, rows_per_file or ROWS_PER_FILE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the model is and runs."""

    models: Path
    parser: str | None = None
    device: Device = "auto"

    def folder(self, model: str | None, task: Task) -> Path:
        """The bundle of that name, or in that folder; else the one that the service takes for the task."""
        return bundle_folder(model or default_name(self.models, task), self.models)

    def sentiment(self) -> str | None:
        """The name of the sentiment model that the service takes for labels of the user's; None without one."""
        cards = [read_card(card.parent) for card in sorted(self.models.glob(f"*/{CARD}"))]
        return next((card.name for card in cards if is_sentiment(card)), None)

    def load(self, model: str | None, task: Task) -> Model:
        """The bundle in that folder."""
        return load(self.folder(model, task), parser=self.parser, device=self.device)


def default_name(models: str | Path, task: Task) -> str:
    """The name of the bundle in `models` that does a task where none is named, as the service chooses.

    Raises StartupError if there is none, BundleError.
    """
    folders = sorted(card.parent for card in Path(models).glob(f"*/{CARD}"))
    chosen = default_of([read_card(folder) for folder in folders], KINDS[task])
    if chosen is None:
        raise StartupError(f"no bundle in {models} does {task}: name another folder of bundles")
    return chosen.name
