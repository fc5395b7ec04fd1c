"""list: the bundles that can be loaded by name, or the encoders that can be trained."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.library import catalogue
from heedful.runtime.bundles import shipped

WRAPPED = ("licence", "use", "paper")
"""Columns of prose."""
UNBOUNDED = 10_000
"""Columns of an output that is no terminal, where a program reads a row a line."""


def command(
    models: Annotated[
        Path | None, typer.Option(help="Folder of bundles, in place of those named above.")
    ] = None,
    encoders: Annotated[
        bool, typer.Option("--encoders", help="The encoders for `train` and `fit` instead.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of a table.")] = False,
) -> None:
    """List the bundles that every command and `heedful.load` know by name, with what each does.

    They are searched for in $HEEDFUL_MODELS, in the folder `bundles`, and in the installed package heedful-bundles.

    Example: heedful list
    """
    rows = _encoders() if encoders else catalogue.bundles(models)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        typer.echo(f"no bundles: {shipped.REMEDY}, or pull one with `heedful pull OWNER/NAME`")
        return
    table = Table(box=None)
    for heading in rows[0]:  # a narrow terminal breaks lines, and cuts nothing
        table.add_column(heading, no_wrap=heading not in WRAPPED, overflow="fold")
    for row in rows:
        table.add_row(
            *(Text(f"{cell:,}" if isinstance(cell, int) else cell) for cell in row.values())
        )
    Console(width=None if sys.stdout.isatty() else UNBOUNDED).print(table)


def _encoders() -> list[dict[str, Any]]:
    """A row for each encoder at its paper's sizes, without word vectors."""
    from heedful.models.registry import ENCODERS, summary  # needs torch

    rows = []
    for name in ENCODERS:
        sizes = summary(name)
        counts = {"parameters": sizes.encoder, "with NLI head": sizes.with_nli_head}
        rows.append({"name": name, "values": sizes.dim, **counts, "paper": sizes.paper})
    return rows
