"""centre: an embedding's vectors without a share of their mean, so that unrelated sentences have small cosines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from heedful.cli import rescore
from heedful.cli.local_model import open_folder
from heedful.cli.options import DATA, BundleParser, Bundles, Data, parser_for
from heedful.export.centring import offset, shifted
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import Card
from heedful.training.data import evenly
from heedful.training.errors import ConfigError

SENTENCES = 10_000
"""Training sentences that give the mean, at most."""
MAX_LOSS = 0.005
"""The dev score may fall by half a point."""


def command(
    bundles: Bundles,
    cosine: Annotated[
        float, typer.Option(min=0, max=1, help="Mean cosine of two training sentences afterwards.")
    ] = 0.15,
    data: Data = DATA,
    parser: BundleParser = None,
) -> None:
    """Take a share of their mean from embeddings' vectors, so that unrelated sentences have small cosines."""
    for bundle in bundles:
        task = rescore.task_of(read(bundle), None)
        if task.kind != "embedding":
            raise ConfigError(
                f"{bundle.name} is of kind {task.kind}: only an embedding's vectors are centred"
            )
        texts, named = evenly(task.texts(data), SENTENCES), parser_for(bundle, parser)
        card = centre(bundle, texts, cosine, data=data, parser=named, console=Console())
        typer.echo(f"{bundle}: version {card.version}")


def centre(
    bundle: Path,
    texts: Sequence[str],
    cosine: float,
    *,
    data: Path,
    parser: str,
    console: Console,
) -> Card:
    """Shift the bundle's vectors so that the mean cosine of `texts` is `cosine`, in place, and measure its scores.

    Raises ExportError, and leaves the bundle unchanged, if it has no projection, if no share of the mean leaves that
    cosine or if the dev score falls too much; BundleError, DataMissing.
    """
    before = read(bundle)
    with open_folder(bundle, parser) as model:
        by = offset(model.loaded.encode(texts, normalize_embeddings=False, truncate=True), cosine)
    fields = before.card.fields()
    fields["parity"]["against"] += "; before its vectors were centred"
    return rescore.replace(
        before,
        fields,
        {**before.model_files, **shifted(before, by)},
        parsers=(parser, parser),
        data=data,
        max_loss=MAX_LOSS,
        kept="keeps its mean: without it",
        console=console,
    )
