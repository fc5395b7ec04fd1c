"""compact: a finished run in few bytes, from which `export` makes a bundle."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from torch import Tensor

from heedful.cli.errors import CommandError
from heedful.export.weight_storage import int8_rows
from heedful.text.atomic import replace_folder
from heedful.training import checkpoint
from heedful.training.restore import require


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path, typer.Option(help="The folder to write: adapters/<name>.")],
) -> None:
    """Copy what a bundle is made from, with the weights in 8 bits."""
    require(run)
    if out.resolve() == run.resolve():
        raise CommandError(f"--out: {out} is the run itself: name another folder")
    if out.exists() and not (out / checkpoint.RECORD).is_file():
        raise CommandError(
            f"--out: {out} exists and holds no {checkpoint.RECORD}: name another folder or remove it"
        )
    with replace_folder(out) as folder:
        for name in (checkpoint.RECORD, checkpoint.SCORES, checkpoint.TOKENIZER, checkpoint.VOCAB):
            if (run / name).exists():
                shutil.copyfile(run / name, folder / name)
        checkpoint.save(folder / checkpoint.BEST, _compact(checkpoint.best(run)))
    size = sum(file.stat().st_size for file in out.iterdir())
    typer.echo(f"{out}: {size / 1e6:.1f} MB")


def _compact(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices in 8 bits with a scale for each row, the other weights in float16: a quarter of the bytes."""
    small: dict[str, Tensor] = {}
    for name, one in weights.items():
        if one.ndim == 2 and one.is_floating_point():
            small[name], small[name + checkpoint.SCALE] = int8_rows(one)
        else:
            small[name] = one.half() if one.is_floating_point() else one
    return small
