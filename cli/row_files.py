"""Rows with their answers as a table, as JSON lines or as parquet, in a file that appears whole or not at all."""

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from heedful.cli.errors import CommandError
from heedful.cli.streams import standard_output
from heedful.cli.texts import GZIPPED, Format, Texts
from heedful.cli.vectors import STDOUT
from heedful.files.atomic import write_file
from heedful.files.rows import SEPARATORS

SUFFIXES = (".csv", ".tsv", ".jsonl", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".parquet")
LABEL_SEPARATOR = ";"
"""Between the labels of one text, in a table's cell."""

AnsweredRow = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A row of the file, and its answer; a table leaves out a dictionary in the answer."""
Chunks = Iterator[Sequence[AnsweredRow]]


def write_rows(
    out: Path, format: Format, texts: Texts, chunks: Chunks, answer_schema: Callable[[], Any]
) -> None:
    """Write the rows in the format of `out`'s suffix; to stdout as a table if `texts` are one, else as JSON lines.

    `format` is that of `texts`; `answer_schema` gives pyarrow's schema of the answers. Raises CommandError for rows
    that the format cannot hold, and where the file cannot be written.
    """
    if out == STDOUT:
        output = standard_output()
        _write_lines(output, format, chunks)
        output.flush()
        return
    plain = Path(out.name.removesuffix(GZIPPED))

    def write(part: Path) -> None:
        if out.suffix == ".parquet":
            _write_parquet(part, texts, chunks, answer_schema())
            return
        with part.open("wb") as file:
            if plain.name == out.name:
                _write_lines(file, plain.suffix[1:], chunks)
                return
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped:
                _write_lines(zipped, plain.suffix[1:], chunks)

    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_file(out, write)
    except OSError as error:
        raise CommandError(f"cannot write {out}: {error.strerror}") from error


def _write_lines(file: Any, format: str, chunks: Chunks) -> None:
    if format not in SEPARATORS:
        for rows in chunks:
            for record, answer in rows:
                file.write(orjson.dumps({**record, **answer}, default=str) + b"\n")
        return
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    table: csv.DictWriter[str] | None = None
    for rows in chunks:
        if table is None:
            columns = chain((record for record, _ in rows), (_cells(answer) for _, answer in rows))
            names = list(dict.fromkeys(chain.from_iterable(columns)))
            table = csv.DictWriter(text, names, delimiter=SEPARATORS[format], lineterminator="\n")
            table.writeheader()
        for record, answer in rows:
            try:
                table.writerow(
                    {name: _cell(value) for name, value in record.items()} | _cells(answer)
                )
            except ValueError as error:
                raise CommandError(
                    f"a row has other columns than the rows before it ({error}): write .jsonl"
                ) from error
    text.detach()


def _cells(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: LABEL_SEPARATOR.join(value) if isinstance(value, list) else value
        for name, value in answer.items()
        if not isinstance(value, dict)
    }


def _cell(value: Any) -> Any:
    return orjson.dumps(value, default=str).decode() if isinstance(value, dict | list) else value


def _write_parquet(out: Path, texts: Texts, chunks: Chunks, answer_schema: Any) -> None:
    """Rows of a parquet file keep their types; all rows of another file are read first, because only all of them tell
    the types of its columns."""
    import pyarrow
    from pyarrow import parquet

    first = list(next(chunks, ()))  # now a parquet file's schema is known
    row_schema = texts.schema
    if row_schema is None:
        first.extend(chain.from_iterable(chunks))
        names = dict.fromkeys(name for record, _ in first for name in record)
        try:
            columns = {name: [record.get(name) for record, _ in first] for name in names}
            row_schema = pyarrow.table(columns).schema
        except pyarrow.ArrowException as error:
            raise CommandError(
                f"{texts.name}: a column holds several types ({error}): write .jsonl"
            ) from error
    schema = pyarrow.unify_schemas([row_schema, answer_schema])
    with parquet.ParquetWriter(out, schema) as writer:
        for rows in chain([first], chunks):
            records = [{**record, **answer} for record, answer in rows]
            writer.write_table(pyarrow.Table.from_pylist(records, schema))
