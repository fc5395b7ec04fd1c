"""Options that several of these commands share."""

from pathlib import Path
from typing import Annotated

import typer

Bundles = Annotated[list[Path], typer.Argument(help="Bundle folders.")]
Results = Annotated[Path, typer.Option(help="Folder of tables and records.")]
FolderParser = Annotated[
    str | None,
    typer.Option(
        "--parser",
        help="For a folder: the spaCy pipeline to load it with; default: the one next to it.",
    ),
]
