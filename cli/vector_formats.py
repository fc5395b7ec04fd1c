"""Rows of vectors as JSON lines, and those lines as a gzip or parquet file."""

import gzip
import shutil
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from heedful.text.arrays import Floats

Vectors = Floats
LINES = 4096
"""Lines converted at a time."""


def json_lines(start: int, ids: Sequence[str | None], vectors: Vectors) -> bytes:
    """A line for each vector (N, D), numbered from `start`; none for a vector of NaN, whose text was skipped."""
    rows = []
    for index, (id, vector) in enumerate(
        zip(ids, np.ascontiguousarray(vectors), strict=True), start
    ):
        if not np.isnan(vector[:1]).any():
            id_field = {} if id is None else {"id": id}
            rows.append(
                orjson.dumps(
                    {"index": index, **id_field, "embedding": vector},
                    option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE,
                )
            )
    return b"".join(rows)


def to_gzip(lines: Path, out: Path) -> None:
    # Without name and time in its header, so that the same rows give the same bytes.
    with (
        lines.open("rb") as source,
        out.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as target,
    ):
        shutil.copyfileobj(source, target)


def to_parquet(
    lines: Path, out: Path, dimension: int, *, ids: bool = False, integer_ids: Any = None
) -> None:
    """Columns index, id with `ids`, and embedding: a list of `dimension` floats.

    Ids are strings, or of pyarrow's type `integer_ids`; then an empty one is null.
    """
    import pyarrow
    from pyarrow import parquet

    with lines.open("rb") as source:
        fields = [("index", pyarrow.int64())]
        if ids:
            fields.append(("id", integer_ids or pyarrow.string()))
        fields.append(("embedding", pyarrow.list_(pyarrow.float32(), dimension)))
        schema = pyarrow.schema(fields)
        with parquet.ParquetWriter(out, schema) as writer:
            while rows := [orjson.loads(line) for line in islice(source, LINES)]:
                if integer_ids:
                    rows = [{**row, "id": int(row["id"]) if row["id"] else None} for row in rows]
                writer.write_table(pyarrow.Table.from_pylist(rows, schema))
