"""export: a finished run -> a bundle."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.export.bundle import export_bundle
from heedful.export.run import read
from heedful.export.weight_storage import Storage


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path, typer.Option(help="The bundle: bundles/<encoder>-<task>.")],
    storage: Annotated[
        Storage,
        typer.Option(help="small: int8 matrices, a large word table in 4 bits; for transformers."),
    ] = "normal",
) -> None:
    """Write a run's best weights as a bundle: ONNX graphs, vocabulary and card."""
    card = export_bundle(read(run), out, storage)
    typer.echo(
        f"{out}: version {card.version}, at most {card.parity.max_abs_error:.1e} from torch "
        f"over {card.parity.cases} cases"
    )
