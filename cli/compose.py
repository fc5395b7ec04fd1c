"""compose: a bundle reads unlisted words by their spelling, unless its score falls too much."""

from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from torch import nn

from heedful.cli import rescore
from heedful.cli.options import DATA, BundleParser, Bundles, Data, parser_for
from heedful.export.compose import listed_vectors, opened
from heedful.export.errors import ExportError
from heedful.models.composed_words import ComposedWords
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import Card
from heedful.text.composition import SIGNATURE
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training import composed

MAX_LOSS = 0.005
"""The dev score may fall by 0.5 points, a third of a standard error on 1,100 rows: what is gained are words that
dev hardly holds."""
ROWS = 14_336
"""Rows of the feature table, as the shipped models are trained with."""
SEED = 1


def command(
    bundles: Bundles,
    scale: Annotated[
        float,
        typer.Option(min=0, max=1, help="Multiplies the composed vectors; 1 is as long as listed."),
    ] = 1,
    data: Data = DATA,
    parser: BundleParser = None,
) -> None:
    """Let bundles with a closed word list compose unlisted words, unless their scores fall too much."""
    for bundle in bundles:
        card = compose(
            bundle, scale, data=data, parser=parser_for(bundle, parser), console=Console()
        )
        typer.echo(f"{bundle}: version {card.version}")


def compose(bundle: Path, scale: float, *, data: Path, parser: str, console: Console) -> Card:
    """Fit composed vectors to the bundle's word table, add them in place, and measure its scores again.

    The encoder is not trained further. Raises ExportError, and leaves the bundle unchanged, if its
    words are open already or the dev score falls too much; BundleError, DataMissing.
    """
    before = read(bundle)
    if not isinstance(before.vocab, Vocab) or before.vocab.composed:
        raise ExportError(f"{bundle.name}: its word list is not closed")
    table = nn.Embedding.from_pretrained(torch.from_numpy(listed_vectors(before)), padding_idx=0)
    words = ComposedWords(table, rows=ROWS, signature=SIGNATURE)
    composed.start(words, Vocab(before.vocab.words[len(SPECIAL) :], ROWS), seed=SEED)
    with torch.no_grad():
        words.features.weight *= scale
    fields = before.card.fields() | {"composed": ROWS}
    fields["parity"]["against"] += "; before unlisted words were composed"
    return rescore.replace(
        before,
        fields,
        {**before.model_files, **opened(before, words)},
        parsers=(parser, parser),
        data=data,
        max_loss=MAX_LOSS,
        kept="keeps its closed word list: with composed words",
        console=console,
    )
