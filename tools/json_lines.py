"""Writes the datasets of the tools as JSON lines."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from heedful.files.atomic import write_file


def write(rows: Iterable[Mapping[str, str]], file: Path) -> None:
    """Write the whole file, or none of it."""
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, lambda part: part.write_text(content, encoding="utf-8"))
