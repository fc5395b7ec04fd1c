"""export: a finished run -> a bundle."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.calibrate import calibrate
from heedful.cli.options import DATA, PARSER, Data, Parser
from heedful.export.bundle import export_bundle
from heedful.export.run import read
from heedful.export.weight_storage import Storage
from heedful.runtime.errors import StartupError
from heedful.training.errors import DataError, DataMissing


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path, typer.Option(help="The bundle: bundles/<encoder>-<task>.")],
    storage: Annotated[
        Storage,
        typer.Option(help="small: int8 matrices, a large word table in 4 bits; for transformers."),
    ] = "normal",
    words: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep so many of the most frequent words; the others are read by their spelling.",
        ),
    ] = None,
    data: Data = DATA,
    parser: Parser = PARSER,
) -> None:
    """Write a run's best weights as a bundle: ONNX graphs, vocabulary and card.

    Its probabilities are calibrated on the dev split, if the data and the parser it was trained with are there. What
    `heedful compact` wrote holds the temperature already.
    """
    trained = read(run, words)
    card = export_bundle(trained, out, storage)
    typer.echo(
        f"{out}: version {card.version}, at most {card.parity.max_abs_error:.1e} from torch "
        f"over {card.parity.cases} cases"
    )
    if card.labels and trained.temperature is None:
        try:
            typer.echo(calibrate(out, data=data, parser=parser))
        except (DataError, DataMissing, StartupError) as reason:
            typer.echo(f"{out} is not calibrated, run heedful calibrate: {reason}", err=True)
