"""compact: a finished run in few bytes, from which `export` makes a bundle."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor

from heedful.cli.calibrate import calibrate
from heedful.cli.errors import CommandError
from heedful.cli.options import DATA, PARSER, Data, Parser
from heedful.export.bundle import export_bundle
from heedful.export.run import read
from heedful.export.weight_storage import int8_rows
from heedful.files.atomic import replace_folder, write_json
from heedful.runtime.errors import StartupError
from heedful.training import checkpoint, tasks
from heedful.training.config import CROSS_ENCODER
from heedful.training.errors import DataError, DataMissing
from heedful.training.restore import read_record


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path, typer.Option(help="The folder to write: adapters/<name>.")],
    over: Annotated[
        Path | None,
        typer.Option(
            help="A compact run beside --out that this one began as: weights equal to its are left out."
        ),
    ] = None,
    data: Data = DATA,
    parser: Parser = PARSER,
) -> None:
    """Copy what a bundle is made from, with the weights in 8 bits and the temperature of its probabilities.

    The temperature is fitted on the dev split, if the data and the parser it was trained with are there.
    """
    record = read_record(run)
    if out.resolve() == run.resolve():
        raise CommandError(f"--out: {out} is the run itself: name another folder")
    if out.exists() and not (out / checkpoint.RECORD).is_file():
        raise CommandError(
            f"--out: {out} exists and holds no {checkpoint.RECORD}: name another folder or remove it"
        )
    if over and (over.resolve() == out.resolve() or over.resolve().parent != out.resolve().parent):
        raise CommandError(
            f"--over: {over} is not beside {out}: name a compact run in {out.parent}"
        )
    with replace_folder(out) as folder:
        for name in (checkpoint.RECORD, checkpoint.SCORES, checkpoint.TOKENIZER, checkpoint.VOCAB):
            if (run / name).exists():
                shutil.copyfile(run / name, folder / name)
        weights = _compact(checkpoint.best(run))
        checkpoint.save(folder / checkpoint.FORMER_BEST, weights)
        if record["labels"] and record["config"]["encoder"]["name"] != CROSS_ENCODER:
            try:
                temperature = _temperature(folder, data, parser)
                write_json(folder / checkpoint.RECORD, {**record, "temperature": temperature})
            except (DataError, DataMissing, StartupError) as reason:
                typer.echo(f"{out}: no temperature was fitted: {reason}", err=True)
        if over:
            checkpoint.save(folder / checkpoint.FORMER_BEST, _own(weights, over))
    size = sum(file.stat().st_size for file in out.iterdir())
    typer.echo(f"{out}: {size / 1e6:.1f} MB")


def _temperature(run: Path, data: Path, parser: str) -> float:
    """That of the bundle which `export --storage small` makes of a run.

    Raises DataMissing, DataError, StartupError.
    """
    trained = replace(read(run), temperature=None)
    tasks.get(trained.task).dev.read(data)  # what is missing is told before the export
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "bundle"
        export_bundle(trained, bundle, "small")
        return calibrate(bundle, data=data, parser=parser).card.temperature


def _own(weights: Mapping[str, Tensor], over: Path) -> dict[str, Tensor | str]:
    """Those that are not the same in `over`, and its name. Raises RunDamaged."""
    base = checkpoint.stored_weights(over)
    own = {
        name: one
        for name, one in weights.items()
        if name not in base or not torch.equal(one, base[name])
    }
    return {checkpoint.OVER: over.resolve().name, **own}


def _compact(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices in 8 bits with a scale for each row, the other weights in float16: a quarter of the bytes."""
    small: dict[str, Tensor] = {}
    for name, one in weights.items():
        if one.ndim == 2 and one.is_floating_point():
            small[name], small[name + checkpoint.SCALE] = int8_rows(one)
        else:
            small[name] = one.half() if one.is_floating_point() else one
    return small
