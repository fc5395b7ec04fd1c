"""unpack: the runs in `adapters/`, which git holds in 8 bits, as runs.

`best.pt` there has the matrices as bytes with a scale for each row, and leaves out what is the same in the run that it
names, in the same folder.
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
"""After the name of a matrix in 8 bits: the scales of its rows (O, 1), which it has to be multiplied by."""
BASE_RUN = ":over"
"""Key of the name of the run in the same folder that holds the weights which this one leaves out."""


def command(
    adapter: Annotated[Path, typer.Argument(help="A folder of adapters/.")],
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs"),
) -> None:
    """Write the run of an adapter's name, to be exported or trained on.

    Example: python -m tools unpack adapters/ms-san-minilm-nli-genres
    """
    typer.echo(f"{unpack(adapter, runs)}")


def unpack(adapter: Path, runs: Path) -> Path:
    """The run's folder. Raises RunMissing, RunDamaged."""
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
    own = checkpoint.load(adapter / PACKED)
    base = own.pop(BASE_RUN, None)
    return _stored(adapter.parent / base) | own if base else own


def _float(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """In float32."""
    found: dict[str, Tensor] = {}
    for name, one in stored.items():
        if name + SCALE in stored:
            found[name] = one * stored[name + SCALE]
        elif not name.endswith(SCALE):
            found[name] = one.float() if one.is_floating_point() else one
    return found
