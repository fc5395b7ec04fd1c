"""repack: a bundle whose word table is stored in 4 bits, where its task hardly notices."""

from pathlib import Path

import typer
from rich.console import Console

from heedful.cli import rescore
from heedful.cli.options import DATA, PARSER, Bundles, Data, Parser
from heedful.export.repack import repacked
from heedful.runtime.bundle import read
from heedful.runtime.card import Card

MOST_LOST = 0.003
"""Of the dev score: 0.3 points."""


def command(bundles: Bundles, data: Data = DATA, parser: Parser = PARSER) -> None:
    """Store bundles' word tables in 4 bits, which halves them, unless their scores fall too much."""
    for bundle in bundles:
        card = repack(bundle, data=data, parser=parser, console=Console())
        typer.echo(f"{bundle}: version {card.version}")


def repack(bundle: Path, *, data: Path, parser: str, console: Console) -> Card:
    """Store the word table of the bundle in 4 bits, in place; its card's scores are measured anew.

    Raises ExportError, and leaves the bundle as it was, where the table is not in int8 or the dev
    score falls too much; BundleError, DataMissing.
    """
    before = read(bundle)
    files = {**before.files, **repacked(before)}
    fields = rescore.fields(before)
    fields["parity"]["against"] += "; before the word table was stored in 4 bits"
    return rescore.replace(
        before,
        fields,
        files,
        parsers=(parser, parser),
        data=data,
        most_lost=MOST_LOST,
        kept="keeps its int8 words: in 4 bits",
        console=console,
    )
