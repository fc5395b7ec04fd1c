"""models: the encoders there are."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.models.registry import ENCODERS, summary


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List every encoder with its paper, its output size and its parameters without word vectors."""
    summaries = {name: summary(name) for name in ENCODERS}
    if as_json:
        typer.echo(json.dumps({name: asdict(one) for name, one in summaries.items()}, indent=2))
        return
    table = Table(box=None)
    for heading in ("encoder", "values", "weights", "with NLI head"):
        table.add_column(heading, no_wrap=True)
    table.add_column("paper")  # a narrow terminal cuts this column, not the names
    for name, one in summaries.items():
        counts = (f"{count:,}" for count in (one.dim, one.encoder, one.with_nli_head))
        table.add_row(name, *counts, Text(one.paper, no_wrap=True, overflow="ellipsis"))
    Console().print(table)
