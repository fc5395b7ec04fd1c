"""Options that several benchmarks share."""

from pathlib import Path
from typing import Annotated

import typer

BUNDLES = Path("bundles")

Seconds = Annotated[float, typer.Option(help="Of each measurement.")]
Rounds = Annotated[int, typer.Option(help="In which what is compared takes turns.")]
Quick = Annotated[bool, typer.Option(help="One short round: a trial.")]
Models = Annotated[Path, typer.Option(help="Folder of the bundles.")]
Data = Annotated[Path, typer.Option(help="Folder of the datasets.")]
