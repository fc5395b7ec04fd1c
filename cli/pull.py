"""pull: a bundle from the Hugging Face hub."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    repository: Annotated[
        str, typer.Argument(help="Where from: OWNER/NAME, or OWNER/NAME@REVISION.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of bundles to put it in.")] = Path("bundles"),
    version: Annotated[
        str | None, typer.Option(help="The version that it must have, as its card names it.")
    ] = None,
) -> None:
    """Download a bundle from the Hugging Face hub, and check its hashes before it is loaded.

    Example: heedful pull me/ms-san-embed
    """
    from heedful.library.hub import pull  # here, so that --help needs no hub extra

    folder = pull(repository, out, version=version)
    typer.echo(f"{folder}: serve it with `heedful serve --models {out}`")
