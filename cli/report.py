"""report: docs/results.md from the cards and the records."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Results
from heedful.files.atomic import write_file
from heedful.training.report import report


def command(
    out: Annotated[Path, typer.Option(help="The page.")] = Path("docs/results.md"),
    bundles: Annotated[Path, typer.Option(help="Folder of the bundles.")] = Path("bundles"),
    results: Results = Path("results"),
) -> None:
    """Write docs/results.md from the cards and the records."""
    page = report(bundles, results)
    write_file(out, lambda part: part.write_text(page, encoding="utf-8"))
