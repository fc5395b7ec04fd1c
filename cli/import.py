# ruff: noqa: N999  # a keyword of Python names the command
"""import: a sentence encoder of transformers or sentence-transformers -> a bundle, served by the same routes."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import command_line, pipeline_of, require_free
from heedful.text.parse import Parser


def command(
    encoder: Annotated[
        str,
        typer.Argument(
            help="minilm, mpnet, the folder of a BERT-like sentence encoder or its name on the hub."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The bundle, such as bundles/minilm.")],
    int8: Annotated[
        bool,
        typer.Option(
            help="Products in int8 on a CPU: faster and smaller, and not the same vectors."
        ),
    ] = False,
) -> None:
    """Write a transformer's bundle: its vectors from /embed, `heedful embed` and `heedful.load`.

    Tokenizer, pooling, prompt and length are read from its files.

    Example: heedful import minilm --out bundles/minilm
    """
    require_free(out)
    from heedful.export.transformer_bundle import import_encoder  # brings torch

    parser = Parser.load(pipeline_of(out))
    card = import_encoder(encoder, out, parser, int8=int8, command=command_line())
    typer.echo(
        f"{out}: version {card.version}, {card.dimension} values; its graph is at most {card.parity.max_abs_error:.1e} "
        f"from torch over {card.parity.cases} cases"
    )
    if card.int8:
        typer.echo(
            f"in int8 the cosine to its vectors is {card.int8.int8:.4f} on average, {card.int8.cosine:.4f} at least"
        )
