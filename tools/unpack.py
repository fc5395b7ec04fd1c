"""unpack: turns the folders in `adapters/`, whose weights are stored in 8 bits, into runs.

Their `best.pt` has the matrices as bytes with a scale for each row, without the weights that equal those of the run
that it names, in the same folder.
"""

import shutil
from pathlib import Path
from typing import Annotated

import typer
from torch import Tensor

from heedful.training import checkpoint
from heedful.training.errors import RunMissing

PACKED = "best.pt"
SCALE = ":scale"
"""Suffix of the name of the scales (O, 1) of a matrix in 8 bits, whose rows they multiply."""
BASE_RUN = ":over"
"""Key of the name of the run, in the same folder, that has the omitted weights."""


def command(
    adapter: Annotated[Path, typer.Argument(help="A folder of adapters/.")],
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs"),
) -> None:
    """Write the run of an adapter's name, to be exported or trained on.

    Example: python -m tools unpack adapters/ms-san-minilm-nli-genres
    """
    typer.echo(f"{unpack(adapter, runs)}")


def unpack(adapter: Path, runs: Path) -> Path:
    """Write the run; returns its folder. Raises RunMissing, RunDamaged."""
    weights = _float(_stored(adapter))
    run = runs / adapter.name
    run.mkdir(parents=True, exist_ok=True)
    for name in (checkpoint.RECORD, checkpoint.SCORES, checkpoint.TOKENIZER):
        shutil.copyfile(adapter / name, run / name)
    checkpoint.save_best(run, weights)
    return run


def _stored(adapter: Path) -> dict[str, Tensor]:
    if not (adapter / PACKED).is_file():
        raise RunMissing(
            f"{adapter} holds no {PACKED}: name a folder of adapters/, next to the others"
        )
    weights = checkpoint.load(adapter / PACKED)
    base = weights.pop(BASE_RUN, None)
    return _stored(adapter.parent / base) | weights if base else weights


def _float(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights in float32."""
    weights: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        if name + SCALE in stored:
            weights[name] = tensor * stored[name + SCALE]
        elif not name.endswith(SCALE):
            weights[name] = tensor.float() if tensor.is_floating_point() else tensor
    return weights
