"""compact: a finished run in few bytes, from which `export` makes a bundle."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from heedful.text.atomic import replace_folder
from heedful.training import checkpoint
from heedful.training.restore import require


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path, typer.Option(help="The folder to write: adapters/<name>.")],
) -> None:
    """Copy what a bundle is made from, with the weights in 8 bits."""
    require(run)
    with replace_folder(out) as folder:
        for name in (checkpoint.RECORD, checkpoint.SCORES, checkpoint.TOKENIZER, checkpoint.VOCAB):
            if (run / name).exists():
                shutil.copyfile(run / name, folder / name)
        weights = checkpoint.compact(checkpoint.best(run))
        checkpoint.save(folder / checkpoint.BEST, weights)
    size = sum(file.stat().st_size for file in out.iterdir())
    typer.echo(f"{out}: {size / 1e6:.1f} MB")
