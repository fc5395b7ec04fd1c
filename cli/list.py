"""list: the bundles that can be loaded by name, or the encoders that can be trained."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.runtime.bundles import shipped
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import CARD, Card

SUBJECTS = {
    "r8": "topic of a news story",
    "sentiment": "sentiment of everyday texts",
    "sst2": "sentiment of film reviews",
    "sst5": "sentiment of film reviews",
    "trec": "what a question wants to know",
}
"""What the labels of the shipped classifiers say, by task."""


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

    They are searched in $HEEDFUL_MODELS, in the folder `bundles`, and in the installed package heedful-bundles.

    Example: heedful list
    """
    rows = _encoders() if encoders else _bundles([models] if models else shipped.places())
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        typer.echo(
            "no bundles: pull one (`heedful pull OWNER/NAME`), or name their folder with --models"
        )
        return
    table = Table(box=None)
    *headings, last = rows[0]
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    table.add_column(last)  # a narrow terminal cuts this column alone
    for row in rows:
        *cells, end = (
            f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()
        )
        table.add_row(*cells, Text(end, no_wrap=True, overflow="ellipsis"))
    Console().print(table)


def _bundles(places: list[Path]) -> list[dict[str, Any]]:
    """A row for each bundle; where two have the same name, of the one that is loaded."""
    cards: dict[str, tuple[Path, Card]] = {}
    for place in places:
        for file in sorted(place.glob(f"*/{CARD}")):
            cards.setdefault(file.parent.name, (file.parent, read_card(file.parent)))
    return [
        {
            "name": name,
            "kind": card.kind,
            "size": f"{sum(file.stat().st_size for file in folder.iterdir()) / 1e6:.0f} MB",
            "licence": card.licence,
            "use": use(card),
        }
        for name, (folder, card) in cards.items()
    ]


def use(card: Card) -> str:
    """What the model does, in one line."""
    if card.kind == "classification":
        return f"{SUBJECTS.get(card.task, 'one of')}: {', '.join(card.labels)}"
    return {
        "embedding": f"search and similarity: vectors of {card.dimension} values",
        "nli": "whether one text follows from another",
        "relatedness": "how related two texts are, 1 to 5",
    }[card.kind]


def _encoders() -> list[dict[str, Any]]:
    """A row for each encoder at its paper's sizes, without word vectors."""
    from heedful.models.registry import ENCODERS, summary  # needs torch

    rows = []
    for name in ENCODERS:
        sizes = summary(name)
        counts = {"parameters": sizes.encoder, "with NLI head": sizes.with_nli_head}
        rows.append({"name": name, "values": sizes.dim, **counts, "paper": sizes.paper})
    return rows
