"""Files appear whole or not at all."""

import json
import os
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` on a temporary neighbour, flush it to the disk, then rename it to `path`."""
    part = path.with_name(f".{path.name}.part")
    write(part)
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(path)


def write_json(path: Path, value: object) -> None:
    text = json.dumps(value, indent=2) + "\n"
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))
