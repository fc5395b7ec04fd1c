"""The folder of the datasets: where it is, where each dataset comes from, and how its files are read."""

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from heedful.training.errors import DataError, DataMissing

Row = TypeVar("Row")
Read = TypeVar("Read")

VARIABLE = "HEEDFUL_DATA"
"""The environment variable that names the folder."""
DEFAULT = Path("data")
PAGE = "docs/data.md"
ADDRESSES = {
    "sick": "https://zenodo.org/records/2787612 (SICK.zip)",
    "stsb": "http://ixa2.si.ehu.eus/stswiki/index.php/STSbenchmark (Stsbenchmark.tar.gz)",
    "wordbridge": "https://github.com/raghavchandra123/wordbridge",
}
"""The official address of each dataset; `tools` adds those that it alone reads."""


def data_folder() -> Path:
    """The folder that HEEDFUL_DATA names, else `data/`."""
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def find(data: Path, candidates: tuple[str, ...], *, dataset: str) -> Path:
    """The first of `candidates` that exists under `data`, gzipped or not. Raises DataMissing."""
    for name in candidates:
        for path in (data / name, data / f"{name}.gz"):
            if path.is_file():
                return path
    raise DataMissing(
        f"{data} holds no {' or '.join(candidates)} (or the same with .gz): get it from "
        f"{ADDRESSES[dataset]}; {PAGE} describes the layout, --data or {VARIABLE} names the folder"
    )


def lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """Lines of a text file, gzipped or not, without line ends.

    Raises DataError where it is not `encoding`, or a gzipped one is damaged.
    """
    with (
        gzip.open(path, "rt", encoding=encoding)
        if path.suffix == ".gz"
        else path.open(encoding=encoding) as file
    ):
        try:
            for line in file:
                yield line.rstrip("\n")
        except UnicodeDecodeError as error:
            raise DataError(f"{path.name}: not {encoding}: {error.reason}") from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(
                f"{path}: a damaged or incomplete gzip file: get it again: {error}"
            ) from error


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file. Raises DataError naming a line that is no object."""
    for number, line in enumerate(lines(path), 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path.name}:{number}: not a JSON object") from error
        if not isinstance(record, dict):
            raise DataError(f"{path.name}:{number}: not a JSON object")
        yield record


def text_of(record: Mapping[str, Any], field: str) -> str:
    """The text in a field. Raises KeyError, ValueError."""
    text = record[field]
    if not isinstance(text, str):
        raise ValueError(f"{field!r} is no text")
    try:
        text.encode()
    except UnicodeEncodeError as error:  # of "\\ud800", which JSON can hold
        raise ValueError(f"{field!r} is no text: {error.reason}") from error
    return text


def read_each(
    path: Path, rows: Iterable[Row], read: Callable[[Row], Read], *, first: int = 1
) -> Iterator[Read]:
    """Call `read` on each row of the file; the rows are numbered from `first`.

    Raises DataError naming the line where `read` raises KeyError, TypeError or ValueError.
    """
    for number, row in enumerate(rows, first):
        try:
            result = read(row)
        except (KeyError, TypeError, ValueError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise DataError(
                f"{path.name}:{number}: {reason}; {PAGE} describes the layout"
            ) from error
        yield result
