"""repack: a bundle's word table in 4 bits, unless its score falls too much."""

from pathlib import Path

import typer
from rich.console import Console

from heedful.cli import rescore
from heedful.cli.options import DATA, BundleParser, Bundles, Data, parser_for
from heedful.export.repack import repacked
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import Card

MAX_LOSS = 0.003
"""The dev score may fall by 0.3 points."""


def command(bundles: Bundles, data: Data = DATA, parser: BundleParser = None) -> None:
    """Store bundles' word tables in 4 bits, which halves them, unless their scores fall too much."""
    for bundle in bundles:
        card = repack(bundle, data=data, parser=parser_for(bundle, parser), console=Console())
        typer.echo(f"{bundle}: version {card.version}")


def repack(bundle: Path, *, data: Path, parser: str, console: Console) -> Card:
    """Store the bundle's word table in 4 bits, in place, and measure its scores again.

    Raises ExportError, and leaves the bundle unchanged, if the table is not in int8 or the dev score
    falls too much; BundleError, DataMissing.
    """
    before = read(bundle)
    files = {**before.model_files, **repacked(before)}
    fields = before.card.fields()
    fields["parity"]["against"] += "; before the word table was stored in 4 bits"
    return rescore.replace(
        before,
        fields,
        files,
        parsers=(parser, parser),
        data=data,
        max_loss=MAX_LOSS,
        kept="keeps its int8 words: in 4 bits",
        console=console,
    )
