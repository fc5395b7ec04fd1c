"""reparse: a bundle that reads another parser's trees, unless its score falls too much."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from heedful.cli import rescore
from heedful.cli.options import DATA, Bundles, Data, parser_for
from heedful.cli.quantize import changes, compared_sentences, measured
from heedful.export.int8_bundle import float_files
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.bundles.card import Card, Int8Card, ParserCard
from heedful.text.parse import Parser

MAX_LOSS = 0.002
"""The dev score may fall by 0.2 points."""


def command(
    bundles: Bundles,
    parser: Annotated[str, typer.Option(help="spaCy pipeline to read from now on.")],
    instead_of: Annotated[
        str | None,
        typer.Option(help="The pipeline that they read now; default: the one beside the bundle."),
    ] = None,
    data: Data = DATA,
) -> None:
    """Let bundles read another parser's trees, unless their scores fall too much."""
    for bundle in bundles:
        now = parser_for(bundle, instead_of)
        card = reparse(bundle, parser, instead_of=now, data=data, console=Console())
        typer.echo(f"{bundle}: version {card.version}, reads {card.parser.name}")


def reparse(bundle: Path, parser: str, *, instead_of: str, data: Path, console: Console) -> Card:
    """Bind the bundle to `parser` instead of `instead_of`, in place, and measure its scores again.

    Raises ExportError, and leaves the bundle unchanged, if its dev score falls too much;
    ParserError, BundleError, DataMissing.
    """
    before = read(bundle)
    loaded = Parser.load(parser)
    fields = {
        **before.card.fields(),
        "parser": ParserCard(name=loaded.name, fingerprint=loaded.fingerprint),
    }
    if before.card.int8:
        fields["int8"] = _int8(before, before.card.int8, fields, parser, data)
    return rescore.replace(
        before,
        fields,
        before.model_files,
        parsers=(instead_of, parser),
        data=data,
        max_loss=MAX_LOSS,
        kept=f"stays with its parser: with {loaded.name}",
        console=console,
    )


def _int8(
    bundle: Bundle, about: Int8Card, fields: Mapping[str, Any], parser: str, data: Path
) -> Int8Card:
    """What the int8 graphs change where they read the parser's trees."""
    task = rescore.task_of(bundle, None)
    sentences = compared_sentences(task, data)
    found = [
        measured(bundle.folder.name, {**fields, "int8": said}, files, task, data, parser, sentences)
        for said, files in ((None, float_files(bundle)), (about, bundle.model_files))
    ]
    return about.model_copy(update=changes(*found))
