"""evaluate: the scores of one model on one split."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from heedful.cli.local_model import open_model
from heedful.cli.options import DATA, PARSER, URL, Data, FolderParser, Url
from heedful.training import tasks
from heedful.training.evaluate import measure, record_score


def command(
    model: Annotated[
        str,
        typer.Argument(help="Name of a served bundle, such as ms-san-sst2, or a bundle's folder."),
    ],
    task: Annotated[str, typer.Argument(help="Task to score it on, such as sst2.")],
    split: Annotated[Literal["dev", "test"], typer.Option(help="Which split.")] = "dev",
    run: Annotated[
        Path | None,
        typer.Option(help="Record the scores in this run's folder, for its next export."),
    ] = None,
    url: Url = URL,
    parser: FolderParser = PARSER,
    data: Data = DATA,
) -> None:
    """Score a model on a task's split: one of a running service, or a bundle's folder."""
    with open_model(model, url=url, parser=parser) as predictor:
        scores = measure(tasks.get(task), split, data, predictor)
    for score in scores:
        if run:
            record_score(score, run)
        typer.echo(
            f"{model} on {score.dataset} {split}: {score.metric} {score.value:.4f} ({score.rows} rows)"
        )
