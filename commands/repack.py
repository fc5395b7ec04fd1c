"""repack: a bundle whose word table is stored in 4 bits, where its task hardly notices."""

import tempfile
from pathlib import Path

from rich.console import Console

from commands import rescore
from commands.serving import server
from export.errors import ExportError
from export.repack import repacked
from runtime.bundle import read, write
from runtime.card import Card
from training.evaluate import measure

MOST_LOST = 0.003
"""Of the dev score: 0.3 points."""


def repack(bundle: Path, *, data: Path, parser: str, console: Console) -> Card:
    """Store the word table of the bundle in 4 bits, in place; its card's scores are measured anew.

    Raises ExportError, and leaves the bundle as it was, where the table is not in int8 or the dev
    score falls too much; BundleError, DataMissing.
    """
    before = read(bundle)
    task = rescore.task_of(before, None)
    files = {**before.files, **repacked(before)}
    fields = rescore.fields(before)
    fields["parity"]["against"] += "; before the word table was stored in 4 bits"
    with server(str(bundle), url="", parser=parser) as served:
        was = measure(task, "dev", data, served)
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / bundle.name
        write(new, fields, files)
        with server(str(new), url="", parser=parser) as served:
            now = rescore.scores(before, task, data, served)
    console.print(
        f"{bundle.name}: {was[0].metric} on {was[0].dataset} dev {was[0].value:.4f} -> {now[0].value:.4f}"
    )
    if was[0].value - now[0].value > MOST_LOST:
        raise ExportError(
            f"{bundle.name} keeps its int8 words: in 4 bits its {was[0].metric} on {was[0].dataset} "
            f"dev falls by {was[0].value - now[0].value:.4f} (at most {MOST_LOST})"
        )
    return write(bundle, {**fields, "scores": rescore.merged(before, now)}, files)
