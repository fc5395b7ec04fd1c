"""average: the mean of a run's weights and those of the run that it began as (Wortsman et al. 2022, WiSE-FT)."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.errors import CommandError
from heedful.files.atomic import replace_folder
from heedful.training import checkpoint
from heedful.training.restore import read_record


def command(
    run: Annotated[Path, typer.Argument(help="A finished run.")],
    base: Annotated[Path, typer.Argument(help="The run that it began as.")],
    out: Annotated[Path, typer.Option(help="Folder of the run to write.")],
) -> None:
    """Write a run with the mean of two runs' weights, to be exported; all else is that of the first.

    Example: python -m tools average runs/ms-san-minilm-nli-broad runs/ms-san-minilm-nli-genres --out runs/mean
    """
    average(run, base, out)


def average(run: Path, base: Path, out: Path) -> None:
    """Write the run. Raises RunMissing, RunDamaged, and CommandError where the runs have other weights."""
    read_record(run)
    weights, others = checkpoint.best(run), checkpoint.best(base)
    if {name: weight.shape for name, weight in weights.items()} != {
        name: weight.shape for name, weight in others.items()
    }:
        raise CommandError(
            f"{run} and {base} have other weights: give a run and the one it began as"
        )
    mean = {
        name: (weight + others[name]) / 2 if weight.is_floating_point() else weight
        for name, weight in weights.items()
    }
    with replace_folder(out) as folder:
        for name in (checkpoint.RECORD, checkpoint.SCORES, checkpoint.TOKENIZER):
            if (run / name).exists():
                shutil.copyfile(run / name, folder / name)
        checkpoint.save_best(folder, mean)
