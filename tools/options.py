"""Options that several of these commands share."""

from pathlib import Path
from typing import Annotated

import typer

Bundles = Annotated[list[Path], typer.Argument(help="Bundle folders.")]
Results = Annotated[Path, typer.Option(help="Folder of tables and records.")]
