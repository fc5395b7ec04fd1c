"""export: a finished run -> a bundle."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from heedful.cli.options import DATA, PARSER, Data, Tasks
from heedful.cli.options import Parser as ParserOption
from heedful.text.parse import Parser
from heedful.training import tasks as task_registry


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="The bundle: bundles/<encoder>-<task>; one that is there is replaced."
        ),
    ],
    storage: Annotated[
        Literal["normal", "small"],
        typer.Option(
            help="small: matrices in int8, large word tables in 4 bits, which is half of the bytes."
        ),
    ] = "normal",
    words: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep so many of the most frequent words; the others are composed from their spelling.",
        ),
    ] = None,
    composed: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows from which unlisted words are composed, for a run that has one vector for all of them; "
            "14336 is a good size.",
        ),
    ] = None,
    int8: Annotated[
        bool, typer.Option(help="Add graphs with int8 matrix products, which a CPU serves.")
    ] = True,
    data: Data = DATA,
    parser: ParserOption = PARSER,
    tasks: Tasks = "",
) -> None:
    """Write a run's best weights as a bundle: ONNX graphs, vocabulary, golden vectors and card.

    The dev split scores it, calibrates its probabilities, and compares its vectors with the trained model's. Nothing is
    written where the score falls by more than 0.005, or an embedding's cosine to the trained one below 0.999.

    Example: heedful export runs/ms-san-sst2 --out bundles/ms-san-sst2
    """
    from heedful.export.run import Choices, export_run  # here: --help needs no training extra

    task_registry.add(tasks)
    card = export_run(
        run,
        out,
        Choices(storage, int8=int8, words=words, composed=composed),
        data=data,
        parser=Parser.load(parser),
        say=lambda line: typer.echo(f"{out}: {line}", err=True),
    )
    typer.echo(
        f"{out}: version {card.version}, at most {card.parity.max_abs_error:.1e} from torch "
        f"over {card.parity.cases} cases"
    )
    if (trained := card.trained) is not None:
        answers = "" if trained.answers is None else f", answers by {trained.answers:.4f} at most"
        typer.echo(
            f"compared with the trained model on {trained.sentences} sentences of dev: cosine at least "
            f"{trained.cosine:.5f}{answers}"
        )
    for score in card.scores:
        typer.echo(
            f"{score.metric} on {score.dataset} {score.split}: {score.value:.4f} ({score.rows} rows)"
        )
