"""embed: a file of vectors from a file of texts, in this process, with the service's batching."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import numpy as np
import typer
from rich.console import Console

from heedful.cli import options
from heedful.cli.embed_progress import EmbedProgress
from heedful.cli.errors import CommandError
from heedful.cli.texts import Columns, Dialect, Format, Row, Texts, format_of, open_texts
from heedful.cli.vector_formats import Vectors
from heedful.cli.vectors import STDOUT, StandardOutput, VectorFile, check_free
from heedful.library.load import load
from heedful.library.model import Model
from heedful.runtime.bundles.card import Card
from heedful.runtime.engine.session import Device
from heedful.runtime.errors import BadInput

CHUNK, CHUNK_CHARACTERS = 512, 4 * 1024 * 1024
"""Maximum of texts embedded at once. The same chunks give the same bits, so a resumed run gives the
bytes of an uninterrupted one."""

OnError = Literal["skip", "stop"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The options that decide the vectors."""

    model: str | None = None
    dimensions: int | None = None
    normalize: bool = True
    truncate: bool = False
    on_error: OnError = "stop"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of texts; "-" is stdin."""

    file: str
    format: Format | None = None
    columns: Columns = field(default_factory=Columns)
    dialect: Dialect = field(default_factory=Dialect)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the model is and runs."""

    models: Path
    parser: str | None = None
    device: Device = "auto"


TextsFile = Annotated[
    str,
    typer.Argument(
        help="Texts: .jsonl, .csv, .tsv, .txt (one a line), each maybe with .gz, or .parquet; - is stdin."
    ),
]
VectorsOut = Annotated[
    str,
    typer.Option(
        help="Vectors, a row for each text: .npy, .jsonl, .jsonl.gz or .parquet; - is stdout (jsonl)."
    ),
]
TextsFormat = Annotated[
    Format | None, typer.Option(help="Format of the texts; default by the suffix, txt for stdin.")
]
Field = Annotated[
    str, typer.Option("--text-column", "--field", help="JSON field or column with the text.")
]
IdField = Annotated[
    str | None,
    typer.Option(
        "--id-column", "--id-field", help="Field or column that is written with each vector."
    ),
]
Dimensions = Annotated[
    int | None, typer.Option(help="Keep only this many leading values of each vector.")
]
Normalize = Annotated[bool, typer.Option(help="Scale each vector to length 1.")]
Failing = Annotated[
    OnError | None,
    typer.Option(
        help="A blank or too long text stops the run (default), or is skipped: no line, a row of NaN in .npy."
    ),
]


def command(
    file: TextsFile,
    out: VectorsOut,
    format: TextsFormat = None,
    field: Field = "text",
    id_field: IdField = None,
    encoding: options.Encoding = "",
    delimiter: options.Delimiter = "",
    model: options.Name = None,
    dimensions: Dimensions = None,
    normalize: Normalize = True,
    truncate: options.Truncate = False,
    on_error: Failing = None,
    resume: options.Resume = False,
    models: options.Models = options.MODELS,
    parser: options.ServedParser = None,
    device: options.RunsOn = "auto",
    ray: Annotated[str | None, options.RAY] = None,
    actors: options.Actors = None,
    rows_per_file: options.RowsPerFile = options.ROWS_PER_FILE,
) -> None:
    """Embed a file of texts, without a server. Continue an interrupted run with --resume.

    Example: heedful embed reviews.csv --text-column review --out reviews.npy

    With --ray a Parquet file or folder, on a Ray cluster, into a folder: --id-column is needed, and
    a row that cannot be embedded is written to outcome=error with its reason.
    """
    console = Console(stderr=True, soft_wrap=True)
    with_ray = {"--actors": actors, "--rows-per-file": rows_per_file != options.ROWS_PER_FILE}
    without_ray = {
        "--format": format,
        "--encoding": encoding,
        "--delimiter": delimiter,
        "--on-error": on_error,
    }
    for option, given in (with_ray if ray is None else without_ray).items():
        if given:
            said = "with" if ray is None else "without"
            raise CommandError(f"{option} has a meaning only {said} --ray: leave it out")
    if ray is not None:
        from heedful.cli.ray_run import Cluster, Job, run  # needs pyarrow

        keywords = {"truncate": truncate, "normalize": normalize, "dimensions": dimensions}
        job = Job(
            *("embed", file, out, [field], id_field, model),
            keywords=keywords,
            models=models,
            parser=parser,
            device=device,
        )
        run(job, Cluster(ray, actors, rows_per_file), resume=resume, console=console)
        return
    if resume and VectorFile.ended(Path(out)):
        typer.echo(f"{out} is complete already", err=True)
        return
    embed_file(
        Source(file, format, Columns(field, id_field), Dialect(encoding, delimiter)),
        Path(out),
        Place(models, parser, device),
        Choice(model, dimensions, normalize, truncate, on_error or "stop"),
        resume=resume,
        console=console,
    )


def embed_file(
    source: Source,
    out: Path,
    place: Place,
    choice: Choice,
    *,
    resume: bool = False,
    console: Console,
) -> None:
    """Embed each text of `source` into a row of `out`, in order, and say what was done.

    Raises CommandError and the errors of the runtime.
    """
    format = source.format or format_of(source.file)
    check_free(out)
    if source.columns.id and out.suffix == ".npy":
        raise CommandError(f"--id-column: {out} holds vectors alone: write .jsonl or .parquet")
    with open_texts(source.file) as file:
        name = "stdin" if source.file == "-" else source.file
        skips = choice.on_error == "skip"
        texts = Texts(file, name, format, source.columns, source.dialect, blank=skips)
        chosen = choice.model or options.default_name(place.models, "embed")
        with load(chosen, models=place.models, parser=place.parser, device=place.device) as model:
            _check_dimensions(choice, model.card)
            made_from = {
                **asdict(choice),
                "model": f"{model.card.name} {model.card.version}",
                "format": format,
                "field": source.columns.text,
                "id_field": source.columns.id,
                **asdict(source.dialect),
            }
            width = choice.dimensions or model.card.dimension
            target = (
                StandardOutput()
                if out == STDOUT
                else VectorFile(out, made_from, width, resume=resume)
            )
            # Bytes are counted in UTF-8: of another encoding they do not add up to the file's size.
            size = None if source.dialect.encoding else _size(file)
            with target as vectors, EmbedProgress(out.name, size, console) as progress:
                rows = iter(texts)
                if isinstance(vectors, VectorFile) and vectors.resumed:
                    vectors.skip(islice(rows, vectors.resumed["rows"]))
                    progress.resumed(vectors.rows)
                while chunk := _chunk(rows):
                    found = _embed(model, chunk, texts, choice)
                    vectors.append(chunk, found)
                    progress.advance(len(chunk), _skipped(found), texts.bytes)
                vectors.finish(ids=bool(source.columns.id), integer_ids=texts.integer_ids)


def _embed(model: Model, chunk: Sequence[Row], texts: Texts, choice: Choice) -> Vectors:
    """Vectors (N, D); NaN for a text that is skipped."""
    read = np.ones(len(chunk), bool)
    if choice.on_error == "skip":
        read = model.fits([row.text for row in chunk], truncate=choice.truncate)
    width = choice.dimensions or model.card.dimension
    vectors: Vectors = np.full((len(chunk), width), np.nan, np.float32)
    rows = [row for row, one in zip(chunk, read.tolist(), strict=True) if one]
    try:
        vectors[read] = model.encode(
            [row.text for row in rows],
            normalize_embeddings=choice.normalize,
            truncate_dim=choice.dimensions,
            truncate=choice.truncate,
            paths=[f"{texts.name}:{row.line}: the text" for row in rows],
        )
    except BadInput as error:
        if error.code != "input_too_long":
            raise
        said = str(error).replace("set truncate to true", "set --truncate or --on-error skip")
        raise CommandError(said) from None
    return vectors


def _skipped(vectors: Vectors) -> int:
    return int(np.isnan(vectors[:, 0]).sum())


def _chunk(rows: Iterator[Row]) -> list[Row]:
    """The next CHUNK rows, or fewer if they are long; none at the end."""
    chunk: list[Row] = []
    characters = 0
    while len(chunk) < CHUNK and characters < CHUNK_CHARACTERS and (row := next(rows, None)):
        chunk.append(row)
        characters += len(row.text)
    return chunk


def _check_dimensions(choice: Choice, card: Card) -> None:
    if choice.dimensions is not None and not 1 <= choice.dimensions <= card.dimension:
        raise CommandError(
            f"--dimensions is {choice.dimensions}, {card.name} has 1 to {card.dimension}"
        )


def _size(file: BinaryIO) -> int | None:
    """Bytes of a regular file that is read as it is; None for a pipe or a gzip file."""
    status = os.fstat(file.fileno())
    plain = stat.S_ISREG(status.st_mode) and not hasattr(file, "mtime")  # gzip's has one
    return status.st_size if plain else None
