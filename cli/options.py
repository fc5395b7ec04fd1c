"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.runtime import shipped
from heedful.training.data_folder import DEFAULT, PAGE, VARIABLE

DATA = DEFAULT
PARSER = "bundles/parser"
MODELS = shipped.models_folder()

Data = Annotated[Path, typer.Option(envvar=VARIABLE, help=f"Folder of the datasets ({PAGE}).")]
Parser = Annotated[str, typer.Option(help="spaCy pipeline, a folder or a package.")]
Models = Annotated[Path, typer.Option(envvar="HEEDFUL_MODELS", help="Bundle folder.")]
ServedParser = Annotated[
    str | None,
    typer.Option(envvar="HEEDFUL_PARSER", help="spaCy pipeline; default <models>/parser."),
]
Bundles = Annotated[list[Path], typer.Argument(help="Bundle folders.")]
Results = Annotated[Path, typer.Option(help="Folder of tables and records.")]
Threads = Annotated[int, typer.Option(min=1, help="Threads of torch.")]
Url = Annotated[str, typer.Option(help="The running service.")]
FolderParser = Annotated[
    str, typer.Option("--parser", help="For a folder: the spaCy pipeline to load it with.")
]
URL = "http://127.0.0.1:8000"
