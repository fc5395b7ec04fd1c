"""distill: a teacher's vectors of one's own texts -> a small encoder of the same vectors, as a bundle.

torch is imported once the texts have been read.
"""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli.texts import Columns, Dialect, Source
from heedful.training.config import Device
from heedful.training.taught_vectors import Effort


def command(
    teacher: Annotated[
        str,
        typer.Argument(
            help="minilm, mpnet, the folder of a sentence encoder or its name on the hub, or a .npy file with a vector "
            "for each of the texts."
        ),
    ],
    texts: options.TextsFile,
    out: Annotated[Path, typer.Option(help="The bundle, such as bundles/mine.")],
    text_column: options.TextColumn = "text",
    format: options.TextsFormat = None,
    encoding: options.Encoding = "",
    delimiter: options.Delimiter = "",
    effort: Annotated[
        Effort,
        typer.Option(
            help="How long it trains: 100,000 texts are read 3, 7 or 20 times; normal and high also make two new texts "
            "of each. A core takes a quarter of an hour, half an hour or 2 hours."
        ),
    ] = "normal",
    runs: options.Runs = options.RUNS,
    seed: Annotated[int, typer.Option(help="Of initial weights, order and what is held out.")] = 1,
    threads: options.AllThreads = None,
    device: Annotated[Device, typer.Option(help="Where teacher and student run.")] = "cpu",
) -> None:
    """Train a small encoder whose vectors are those of a large one, on your texts, and write its bundle.

    Stopped, the same command goes on where it was. A tenth of the texts, 1,000 at most, is held out to measure what
    was kept.

    Example: heedful distill minilm texts.txt --out bundles/mine
    """
    source = Source(texts, format, Columns(text_column), Dialect(encoding, delimiter))
    with source.open(blank=True) as read:
        rows = [row.text for row in read]
    from heedful.cli.distill_run import distill

    card = distill(
        teacher, rows, out, effort=effort, runs=runs, seed=seed, threads=threads, device=device
    )
    facts = card.distilled
    assert facts is not None
    typer.echo(
        f"{out}: version {card.version}, {facts.bytes / 1e6:.1f} MB; on {facts.texts} texts held out the mean cosine "
        f"to the teacher's vector is {facts.cosine:.3f}, and {facts.neighbours:.0%} of its ten nearest texts are kept"
    )
    teacher_speed = (
        f", the teacher {facts.teacher_texts_per_second:.0f}"
        if facts.teacher_texts_per_second
        else ""
    )
    typer.echo(f"a thread encodes {facts.texts_per_second:.0f} texts a second{teacher_speed}")
