"""Files appear whole or not at all."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` on a temporary neighbour, flush it to the disk, then rename it to `path`."""
    part = path.with_name(f".{path.name}.part")
    write(part)
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(path)


def write_arrays(path: Path, **arrays: npt.ArrayLike) -> None:
    """Write an .npz archive whole; its folder is made where it is not there."""

    def write(part: Path) -> None:
        with part.open("wb") as out:  # given a name, numpy would append .npz to it
            np.savez(out, **arrays)  # type: ignore[arg-type]  # its keywords are typed as flags too

    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, write)


def write_json(path: Path, value: object) -> None:
    text = json.dumps(value, indent=2) + "\n"
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))
