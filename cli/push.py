"""push: a bundle to the Hugging Face hub."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.library.hub import push


def command(
    bundle: Annotated[Path, typer.Argument(help="The bundle's folder.")],
    repository: Annotated[str, typer.Argument(help="Where to: OWNER/NAME.")],
    private: Annotated[bool, typer.Option(help="Make a new repository private.")] = False,
) -> None:
    """Upload a bundle to the Hugging Face hub, with its parser and a model card.

    The token is HF_TOKEN, or that of `hf auth login`.
    """
    typer.echo(push(bundle, repository, private=private))
