"""embed: a file of vectors from a file of texts, in this process, with the service's batching."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from rich.console import Console

from heedful.cli import options
from heedful.cli.errors import CommandError
from heedful.cli.placement import Place, cluster_of
from heedful.cli.row_progress import RowProgress
from heedful.cli.texts import Columns, Dialect, Row, Source, Texts, chunks
from heedful.cli.vector_formats import Vectors
from heedful.cli.vectors import STDOUT, SUFFIXES, StandardOutput, VectorFile, check_free
from heedful.library.model import Model
from heedful.runtime.errors import BadInput

OnError = Literal["skip", "stop"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The options that decide the vectors."""

    model: str | None = None
    dimensions: int | None = None
    normalize: bool = True
    truncate: bool = False
    on_error: OnError = "stop"


def command(
    file: options.TextsFile,
    out: Annotated[
        str,
        typer.Option(
            help="Vectors, a row for each text: .npy, .jsonl, .jsonl.gz or .parquet; - is stdout (jsonl)."
        ),
    ],
    format: options.TextsFormat = None,
    text_column: options.TextColumn = "text",
    id_column: options.IdColumn = None,
    encoding: options.Encoding = "",
    delimiter: options.Delimiter = "",
    model: options.Name = None,
    dimensions: Annotated[
        int | None, typer.Option(help="Keep only this many leading values of each vector.")
    ] = None,
    normalize: Annotated[bool, typer.Option(help="Scale each vector to length 1.")] = True,
    truncate: Annotated[
        bool, typer.Option(help="Cut texts that are longer than the model reads.")
    ] = False,
    on_error: Annotated[
        OnError | None,
        typer.Option(
            help="A blank or too long text stops the run (default), or is skipped: no line, a row of NaN in .npy."
        ),
    ] = None,
    resume: options.Resume = False,
    models: options.Models = options.MODELS,
    parser: options.ServedParser = None,
    device: options.RunsOn = "auto",
    ray: options.Ray = None,
    actors: options.Actors = None,
    rows_per_file: options.RowsPerFile = None,
) -> None:
    """Embed a file of texts, without a server. Continue an interrupted run with --resume.

    Example: heedful embed reviews.csv --text-column review --out reviews.npy

    With --ray a Parquet file or folder, on a Ray cluster, into a folder: --id-column is needed, and
    a row that cannot be embedded is written to outcome=error with its reason.
    """
    console = Console(stderr=True, soft_wrap=True)
    place = Place(models, parser, device)
    cluster = cluster_of(
        *(ray, actors, rows_per_file),
        {
            "--format": format,
            "--encoding": encoding,
            "--delimiter": delimiter,
            "--on-error": on_error,
        },
    )
    if cluster:
        from heedful.cli.ray_run import Job, run  # needs pyarrow

        keywords = {"truncate": truncate, "normalize": normalize, "dimensions": dimensions}
        job = Job("embed", file, out, [text_column], id_column, model, keywords, place)
        run(job, cluster, resume=resume, console=console)
        return
    if resume and VectorFile.ended(Path(out)):
        typer.echo(f"{out} is complete already", err=True)
        return
    embed_file(
        Source(file, format, Columns(text_column, id_column), Dialect(encoding, delimiter)),
        Path(out),
        place,
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
    """Embed each text of `source` into a row of `out`, in order, and print how many and how fast.

    Raises CommandError and the errors of the runtime.
    """
    check_free(out, SUFFIXES)
    columns = source.columns
    if columns.id and out.suffix == ".npy":
        raise CommandError(f"--id-column: {out} holds vectors alone: write .jsonl or .parquet")
    with (
        source.open(blank=choice.on_error == "skip") as texts,
        place.load(choice.model, "embed") as model,
    ):
        dimension = model.card.dimension
        if choice.dimensions is not None and not 1 <= choice.dimensions <= dimension:
            raise CommandError(
                f"--dimensions is {choice.dimensions}, {model.card.name} has 1 to {dimension}"
            )
        made_from = {
            **asdict(choice),
            "model": f"{model.card.name} {model.card.version}",
            "format": source.format,
            "field": columns.text,
            "id_field": columns.id,
            **asdict(source.dialect),
        }
        width = choice.dimensions or model.card.dimension
        target = (
            StandardOutput() if out == STDOUT else VectorFile(out, made_from, width, resume=resume)
        )
        with target as vector_file, RowProgress(out.name, texts.size, console) as progress:
            rows = iter(texts)
            if isinstance(vector_file, VectorFile) and vector_file.resumed:
                vector_file.skip(islice(rows, vector_file.resumed["rows"]))
                progress.resumed(vector_file.rows)
            for chunk in chunks(rows):
                vectors = _embed(model, chunk, texts, choice)
                vector_file.append(chunk, vectors)
                skipped = int(np.isnan(vectors[:, 0]).sum())
                progress.advance(len(chunk), texts.bytes, {"skipped": skipped})
            vector_file.finish(ids=bool(columns.id), integer_ids=texts.integer_ids)


def _embed(model: Model, chunk: Sequence[Row], texts: Texts, choice: Choice) -> Vectors:
    """Vectors (N, D); NaN for a text that is skipped."""
    fits = np.ones(len(chunk), bool)
    if choice.on_error == "skip":
        fits = model.fits([row.text for row in chunk], truncate=choice.truncate)
    width = choice.dimensions or model.card.dimension
    vectors: Vectors = np.full((len(chunk), width), np.nan, np.float32)
    rows = [row for row, fit in zip(chunk, fits.tolist(), strict=True) if fit]
    try:
        vectors[fits] = model.encode(
            [row.text for row in rows],
            normalize_embeddings=choice.normalize,
            truncate_dim=choice.dimensions,
            truncate=choice.truncate,
            paths=[f"{texts.name}:{row.line}: the text" for row in rows],
        )
    except BadInput as error:
        if error.code != "input_too_long":
            raise
        message = str(error).replace("set truncate=True", "set --truncate or --on-error skip")
        raise CommandError(message) from None
    return vectors
