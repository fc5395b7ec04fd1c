"""evaluate: the scores of one model on one split."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from heedful.cli import suite
from heedful.cli.local_model import LocalModel, open_model
from heedful.cli.options import DATA, URL, Data, FolderParser, Url
from heedful.training import tasks
from heedful.training.errors import ConfigError
from heedful.training.evaluate import label_mismatch_warnings, measure, record_score
from heedful.training.restore import read_record, require
from heedful.training.tasks.base import Task


def command(
    model: Annotated[
        str,
        typer.Argument(help="Name of a served bundle, such as ms-san-sst2, or a bundle's folder."),
    ],
    task: Annotated[
        str, typer.Argument(help="Task to score it on, such as sst2; none with --suite.")
    ] = "",
    split: Annotated[Literal["dev", "test"], typer.Option(help="Which split.")] = "dev",
    run: Annotated[
        Path | None,
        typer.Option(help="Record the scores in this run's folder, for its next export."),
    ] = None,
    whole_suite: Annotated[
        bool,
        typer.Option(
            "--suite",
            help="Score a bundle's folder, or minilm, static-table or bm25, on every set of its kind.",
        ),
    ] = False,
    rows: Annotated[
        int | None, typer.Option(min=100, help="With --suite: at most this many rows of a set.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="With --suite: record the scores in this folder.")
    ] = None,
    url: Url = URL,
    parser: FolderParser = None,
    data: Data = DATA,
) -> None:
    """Score a model on a task's split: one of a running service, or a bundle's folder.

    Examples: heedful evaluate bundles/ms-san-sst2 sst2 --split test

    heedful evaluate bundles/ms-san-embed --suite
    """
    if whole_suite:
        if task or run:
            raise ConfigError("--suite scores a bundle on all sets: leave out the task and --run")
        for line in suite.record(model, results, split=split, rows=rows, data=data, parser=parser):
            typer.echo(line)
        return
    for option, value in (("--rows", rows), ("--results", results)):
        if value is not None:
            raise ConfigError(f"{option} is for --suite: a task's split is scored whole")
    if not task:
        raise typer.BadParameter("name a task, such as sst2, or take --suite", param_hint="TASK")
    if run:
        require(run)
    with open_model(model, url=url, parser=parser) as predictor:
        chosen = tasks.get(task)
        if run:
            _require_task(run, chosen)
            if isinstance(predictor, LocalModel):
                _require_same(run, predictor)
        scores = measure(chosen, split, data, predictor)
        for one in label_mismatch_warnings(chosen, predictor.labels(chosen)):
            typer.echo(f"{model} on {task}: {one}", err=True)
    for score in scores:
        if run:
            record_score(score, run)
        typer.echo(
            f"{model} on {score.dataset} {split}: {score.metric} {score.value:.4f} ({score.rows} rows)"
        )


def _require_task(run: Path, task: Task) -> None:
    """Raises ConfigError for a task of other labels, whose score could replace one of the run's own: SST-2 and SST-5
    are one dataset."""
    labels = read_record(run)["labels"]
    if sorted(labels) != sorted(task.labels):
        raise ConfigError(
            f"--run: {run} has the labels {', '.join(labels) or 'none'}, {task.name} "
            f"{', '.join(task.labels) or 'none'}: leave --run out, or score the run on its own task"
        )


def _require_same(run: Path, model: LocalModel) -> None:
    """Raises ConfigError where the bundle was not exported from a run of these classes and this encoder."""
    record, card = read_record(run), model.card
    encoder = record["config"].get("encoder", {}).get("name")
    if (encoder, record["labels"]) != (card.encoder.name, list(card.labels)):
        raise ConfigError(
            f"--run: {card.name} is no bundle of {run}: name the run that it was exported from"
        )
