"""reparse: a bundle that reads another parser's trees, where its task hardly notices."""

import tempfile
from pathlib import Path

from rich.console import Console

from commands import rescore
from commands.serving import server
from export.errors import ExportError
from runtime.bundle import read, write
from runtime.card import Card, ParserCard
from text.parse import Parser
from training.evaluate import measure

MOST_LOST = 0.002
"""Of the dev score: 0.2 points."""


def reparse(bundle: Path, parser: str, *, instead_of: str, data: Path, console: Console) -> Card:
    """Bind the bundle to `parser`, in place; its card's scores are measured anew.

    `instead_of` is the parser that it reads now. Raises ExportError, and leaves the bundle as it
    was, where its dev score falls too much; ParserError, BundleError, DataMissing.
    """
    before = read(bundle)
    task = rescore.task_of(before, None)
    loaded = Parser.load(parser)
    bound = {
        **rescore.fields(before),
        "parser": ParserCard(name=loaded.name, fingerprint=loaded.fingerprint),
    }
    with server(str(bundle), url="", parser=instead_of) as served:
        was = measure(task, "dev", data, served)
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / bundle.name
        write(new, bound, before.files)
        with server(str(new), url="", parser=parser) as served:
            now = rescore.scores(before, task, data, served)
    console.print(
        f"{bundle.name}: {was[0].metric} on {was[0].dataset} dev {was[0].value:.4f} -> {now[0].value:.4f}"
    )
    if was[0].value - now[0].value > MOST_LOST:
        raise ExportError(
            f"{bundle.name} stays with its parser: with {loaded.name} its {was[0].metric} on "
            f"{was[0].dataset} dev falls by {was[0].value - now[0].value:.4f} (at most {MOST_LOST})"
        )
    return write(bundle, {**bound, "scores": rescore.merged(before, now)}, before.files)
