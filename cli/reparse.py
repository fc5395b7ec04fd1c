"""reparse: a bundle that reads another parser's trees, where its task hardly notices."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from heedful.cli import rescore
from heedful.cli.options import DATA, PARSER, Bundles, Data
from heedful.runtime.bundle import read
from heedful.runtime.card import Card, ParserCard
from heedful.text.parse import Parser

MOST_LOST = 0.002
"""Of the dev score: 0.2 points."""


def command(
    bundles: Bundles,
    parser: Annotated[str, typer.Option(help="spaCy pipeline to read from now on.")],
    instead_of: Annotated[str, typer.Option(help="The one that they read now.")] = PARSER,
    data: Data = DATA,
) -> None:
    """Let bundles read another parser's trees, unless their scores fall too much."""
    for bundle in bundles:
        card = reparse(bundle, parser, instead_of=instead_of, data=data, console=Console())
        typer.echo(f"{bundle}: version {card.version}, reads {card.parser.name}")


def reparse(bundle: Path, parser: str, *, instead_of: str, data: Path, console: Console) -> Card:
    """Bind the bundle to `parser`, in place; its card's scores are measured anew.

    `instead_of` is the parser that it reads now. Raises ExportError, and leaves the bundle as it
    was, where its dev score falls too much; ParserError, BundleError, DataMissing.
    """
    before = read(bundle)
    loaded = Parser.load(parser)
    fields = {
        **rescore.fields(before),
        "parser": ParserCard(name=loaded.name, fingerprint=loaded.fingerprint),
    }
    return rescore.replace(
        before,
        fields,
        before.files,
        parsers=(instead_of, parser),
        data=data,
        most_lost=MOST_LOST,
        kept=f"stays with its parser: with {loaded.name}",
        console=console,
    )
