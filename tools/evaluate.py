"""evaluate: the scores of a served bundle, or of a bundle's folder, on a split of a task."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from heedful.cli.options import DATA, URL, Data, Tasks, Url
from heedful.training import tasks as task_registry
from heedful.training.errors import ConfigError
from heedful.training.restore import read_record, require_finished
from heedful.training.tasks.base import Task
from tools.local_model import LocalModel, open_model
from tools.options import FolderParser
from tools.scoring import label_mismatch_warnings, measure, record_score


def command(
    model: Annotated[str, typer.Argument(help="A served bundle's name, or a bundle's folder.")],
    task: Annotated[str, typer.Argument(help="Task to score it on, such as sst2.")],
    split: Annotated[Literal["dev", "test"], typer.Option(help="Which split.")] = "dev",
    run: Annotated[
        Path | None,
        typer.Option(help="Record the scores in this run's folder, for its next export."),
    ] = None,
    url: Url = URL,
    parser: FolderParser = None,
    data: Data = DATA,
    tasks: Tasks = "",
) -> None:
    """Score a model on a task's split.

    Example: python -m tools evaluate bundles/ms-san-sst2 sst2 --split test
    """
    task_registry.add(tasks)
    if run:
        require_finished(run)
    with open_model(model, url=url, parser=parser) as predictor:
        chosen = task_registry.get(task)
        if run:
            _require_task(run, chosen)
            if isinstance(predictor, LocalModel):
                _require_same(run, predictor)
        scores = measure(chosen, split, data, predictor)
        for warning in label_mismatch_warnings(chosen, predictor.labels(chosen)):
            typer.echo(f"{model} on {task}: {warning}", err=True)
    for score in scores:
        if run:
            record_score(score, run)
        typer.echo(
            f"{model} on {score.dataset} {split}: {score.metric} {score.value:.4f} ({score.rows} rows)"
        )


def _require_task(run: Path, task: Task) -> None:
    """Raise ConfigError for a task of other labels: its score could replace one of the run's (SST-2 and SST-5 are one
    dataset)."""
    labels = read_record(run)["labels"]
    if sorted(labels) != sorted(task.labels):
        raise ConfigError(
            f"--run: {run} has the labels {', '.join(labels) or 'none'}, {task.name} "
            f"{', '.join(task.labels) or 'none'}: leave --run out, or score the run on its own task"
        )


def _require_same(run: Path, model: LocalModel) -> None:
    """Raise ConfigError where the bundle was not exported from a run of these classes and this encoder."""
    record, card = read_record(run), model.card
    encoder = record["config"].get("encoder", {}).get("name")
    if (encoder, record["labels"]) != (card.encoder.name, list(card.labels)):
        raise ConfigError(
            f"--run: {card.name} is no bundle of {run}: name the run that it was exported from"
        )
