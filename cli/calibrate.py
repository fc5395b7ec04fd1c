"""calibrate: the temperature of a bundle's probabilities, fitted on its task's dev split."""

from dataclasses import dataclass
from pathlib import Path

import typer

from heedful.cli import rescore
from heedful.cli.local_model import open_folder
from heedful.cli.options import DATA, BundleParser, Bundles, Data, parser_for
from heedful.export.bundle_writer import rewrite
from heedful.runtime.answers import softmax
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import Card
from heedful.training.calibration import calibration_error, fit_temperature
from heedful.training.data import labels as gold_labels
from heedful.training.errors import ConfigError


def command(bundles: Bundles, data: Data = DATA, parser: BundleParser = None) -> None:
    """Fit the temperature of bundles' probabilities on dev and store it in their cards."""
    for bundle in bundles:
        typer.echo(calibrate(bundle, data=data, parser=parser_for(bundle, parser)))


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The bundle's new card, and its calibration errors on dev before and after."""

    card: Card
    before: float
    after: float

    def __str__(self) -> str:
        return (
            f"{self.card.name}: temperature {self.card.temperature:g}, calibration error on dev "
            f"{self.before:.4f} -> {self.after:.4f}; version {self.card.version}"
        )


def calibrate(bundle: Path, *, data: Path, parser: str) -> Calibrated:
    """Fit the temperature and replace the bundle's card.

    Raises ConfigError for a bundle without labels or with a task that is not known, DataMissing, DataError.
    """
    old = read(bundle)
    if not old.card.labels:
        raise ConfigError(f"{old.card.name} gives no probabilities: only labels are calibrated")
    task = rescore.task_of(old, None)
    examples = task.dev.read(data)
    task.require("dev", examples)
    with open_folder(bundle, parser) as model:
        scaled = model.ordered_logits(examples, task.labels)
    gold = gold_labels(examples)
    temperature = fit_temperature(scaled * old.card.temperature, gold)
    after = scaled * old.card.temperature / temperature
    fields = old.card.fields() | {"temperature": temperature}
    card = rewrite(bundle, fields, old.files)
    errors = (calibration_error(softmax(one), gold) for one in (scaled, after))
    return Calibrated(card, *errors)
