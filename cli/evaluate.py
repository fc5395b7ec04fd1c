"""evaluate: how well a model does on a user's own file, or on a task of the papers."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from heedful.cli import options
from heedful.cli.errors import CommandError
from heedful.cli.texts import Dialect, Source


def command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="FILE|MODEL",
            help="A labelled file, with --model; or a served bundle's name, or a bundle's folder.",
        ),
    ],
    task: Annotated[str, typer.Argument(help="Task to score a bundle on, such as sst2.")] = "",
    of_model: Annotated[
        str | None, typer.Option("--model", help="For a file: the bundle's name or folder.")
    ] = None,
    label_column: Annotated[str, typer.Option(help="For a file: column of the labels.")] = "label",
    text_column: options.TextColumn = "text",
    premise_column: options.PremiseColumn = None,
    hypothesis_column: options.HypothesisColumn = None,
    labels: options.Labels = "",
    format: options.TextsFormat = None,
    encoding: options.Encoding = "",
    delimiter: options.Delimiter = "",
    as_json: Annotated[bool, typer.Option("--json", help="For a file: JSON, not tables.")] = False,
    models: options.Models = options.MODELS,
    split: Annotated[Literal["dev", "test"], typer.Option(help="Which split.")] = "dev",
    run: Annotated[
        Path | None,
        typer.Option(help="Record the scores in this run's folder, for its next export."),
    ] = None,
    url: options.Url = options.URL,
    parser: options.FolderParser = None,
    data: options.Data = options.DATA,
    tasks: options.Tasks = "",
) -> None:
    """Score a model on your own labelled file, or on a task's split.

    Examples: heedful evaluate mails.csv --model bundles/mails --text-column body --label-column topic

    heedful evaluate bundles/ms-san-sst2 sst2 --split test
    """
    if of_model is not None:
        from heedful.cli.answers import Asked
        from heedful.cli.evaluate_file import evaluate_file
        from heedful.cli.placement import Place

        if task or run:
            raise CommandError("--model scores a file: leave out the task and --run")
        asked = Asked.of(of_model, labels, premise_column, hypothesis_column)
        place = Place(models, parser)
        columns = asked.columns(place, text_column, labels=label_column)
        evaluate_file(
            Source(model, format, columns, Dialect(encoding, delimiter)),
            asked,
            place,
            as_json=as_json,
        )
        return
    if not task:
        raise typer.BadParameter(
            "name a task, such as sst2; for a file of yours add --model", param_hint="TASK"
        )
    from heedful.cli.evaluate_task import evaluate_task
    from heedful.training import tasks as known

    known.add(tasks)
    evaluate_task(model, task, split=split, run=run, url=url, parser=parser, data=data)
