"""Files that a test writes."""

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def put(folder: Path, name: str, content: str | bytes, encoding: str = "utf-8") -> Path:
    """The new file, in a folder that need not be there."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return file


def write(folder: Path, files: Mapping[str, str | bytes], encoding: str = "utf-8") -> None:
    for name, content in files.items():
        put(folder, name, content, encoding)


def write_rows(folder: Path, files: Mapping[str, Sequence[object]]) -> None:
    """For each name a file of JSON lines, gzipped."""
    for name, rows in files.items():
        put(folder, f"{name}.jsonl.gz", gzip.compress(lines(*rows).encode()))


def lines(*rows: object) -> str:
    """A line of JSON for each."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(*rows: Sequence[object], separator: str = ",") -> str:
    """The rows as CSV."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerows(rows)
    return out.getvalue()
