"""trust: measures how far bundles' explanations can be trusted, and writes the figures into the cards of copies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track

from heedful.cli.errors import CommandError
from heedful.cli.options import DATA, BundleParser, Data, parser_for
from heedful.export.bundle_writer import write
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import Card, ControlCard, TrustCard
from heedful.runtime.errors import BadInput
from heedful.runtime.explain.run import ExplainOptions
from heedful.text import parse
from heedful.training.data import evenly
from heedful.training.metrics import dev_metric
from heedful.training.tasks.base import Example, Task
from tools.bundle_task import task_of
from tools.control_scores import ControlScores
from tools.gradient_scores import explain, gradient_scores, pooling
from tools.local_model import LocalModel, open_folder
from tools.options import Bundles
from tools.trust_page import write_page


def command(
    bundles: Bundles,
    out: Annotated[
        Path | None, typer.Option(help="Folder for a copy of each bundle with the figures.")
    ] = None,
    data: Data = DATA,
    parser: BundleParser = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Only write the table of this page, from the cards as they are."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Examples of dev for the controls.")] = 1000,
    curves: Annotated[int, typer.Option(min=1, help="Examples of dev for the curves.")] = 100,
    gradients: Annotated[
        int, typer.Option(min=1, help="Sentences of dev for integrated gradients.")
    ] = 200,
) -> None:
    """Measure what bundles' attention is worth: controls, curves, integrated gradients; copies' cards hold them."""
    if page:
        write_page(page, [read(folder).card for folder in bundles])
        return
    if out is None:
        raise CommandError(
            "name a folder for the measured copies with --out, or a page with --page"
        )
    console = Console()
    for folder in bundles:
        card = measure(
            *(folder, out / folder.name, parser_for(folder, parser)),
            data=data,
            rows=rows,
            curves=curves,
            gradients=gradients,
        )
        assert card.trust is not None
        console.print(f"{out / folder.name}: version {card.version}")
        for control in card.trust.controls:
            console.print(f"  {control.name:24} {control.value:.4f}")


def measure(
    folder: Path, out: Path, parser: str, *, data: Path, rows: int, curves: int, gradients: int
) -> Card:
    """Measure the bundle in `folder` and write the bundle `out`, whose card holds the figures too.

    Raises ParserError, BundleError, ConfigError, DataMissing, ExportError.
    """
    bundle = read(folder)
    task = task_of(bundle)
    dev = task.dev.read(data)
    examples = evenly(dev, rows)
    (_, value), *controls = ControlScores(
        bundle, parse.Parser.load(parser), task, examples
    ).scores()
    with open_folder(folder, parser) as model:
        trust = TrustCard.model_validate(
            {
                "dataset": task.dev.name,
                "metric": dev_metric(task.kind)[0],
                "rows": len(examples),
                "value": value,
                "controls": [ControlCard(name=name, value=score) for name, score in controls],
                **_curves(model, task, evenly(examples, curves)),
            }
        )
        try:
            gradient_card = gradient_scores(model, task, dev, gradients)
        except BadInput as error:
            if error.code != "no_gradients":
                raise
            gradient_card = None
    trust = trust.model_copy(update={"gradients": gradient_card})
    return write(out, bundle.card.fields() | {"trust": trust}, bundle.files)


def _curves(model: LocalModel, task: Task, examples: Sequence[Example]) -> dict[str, float | None]:
    """Fields of TrustCard: means over the texts that have curves."""
    options = ExplainOptions(evidence=True, curves=True)
    areas: dict[str, list[float]] = {"attention": [], "evidence": [], "random": []}
    correlations = []
    for example in track(examples, "curves", transient=True):
        explained = explain(model, task, example, options)
        curves, evidence = (explained[name]["sentences"][0] for name in ("curves", "evidence"))
        if curves is None or evidence is None:  # a text of one token
            continue
        orders = curves["deleted"]["orders"]
        by_name = {order["name"]: order["normalised_comprehensiveness"] for order in orders}
        if None not in [by_name[name] for name in areas]:
            for name in areas:
                areas[name].append(by_name[name] or 0.0)
        correlation = pooling(evidence)
        correlations += [] if correlation is None else [correlation]
    attention, random = np.array(areas["attention"]), np.array(areas["random"])
    return {
        "sentences": len(attention),
        **{name: float(np.mean(values)) for name, values in areas.items()},
        "wins": float((attention > random).mean()),
        "correlation": float(np.mean(correlations)) if correlations else None,
    }
