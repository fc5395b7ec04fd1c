"""embed: a file of vectors from a file of texts, in this process, with the service's batching."""

import asyncio
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from heedful.cli.errors import CommandError
from heedful.cli.options import Models, ServedParser
from heedful.cli.texts import Format, Row, Texts, format_of
from heedful.cli.vectors import VectorFile, check_free
from heedful.runtime.card import Card
from heedful.runtime.inference import Inference
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, running

CHUNK, CHUNK_CHARACTERS = 512, 4 * 1024 * 1024
"""Maximum of texts embedded at once. The same chunks give the same bits, so a resumed run gives the
bytes of an uninterrupted one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The options that decide the vectors."""

    model: str | None = None
    dimensions: int | None = None
    normalize: bool = True
    truncate: bool = False


def command(
    file: Annotated[
        str, typer.Argument(help="Texts: .jsonl, .csv, .txt (one a line), - is stdin.")
    ],
    out: Annotated[Path, typer.Option(help="Vectors: .jsonl or .npy, a row for each text.")],
    format: Annotated[
        Format | None,
        typer.Option(help="Format of the texts; default by the suffix, txt for stdin."),
    ] = None,
    field: Annotated[
        str,
        typer.Option("--field", "--text-column", help="JSON field or CSV column with the text."),
    ] = "text",
    model: Annotated[str | None, typer.Option(help="Name of a bundle; default as `serve`.")] = None,
    dimensions: Annotated[
        int | None, typer.Option(help="Keep only the first so many values of each vector.")
    ] = None,
    normalize: Annotated[bool, typer.Option(help="Scale each vector to length 1.")] = True,
    truncate: Annotated[
        bool, typer.Option(help="Cut texts that are longer than the model reads.")
    ] = False,
    resume: Annotated[bool, typer.Option(help="Continue what an interrupted run left.")] = False,
    models: Models = Path("bundles"),
    parser: ServedParser = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(envvar="HEEDFUL_DEVICE", help="Where models run."),
    ] = "auto",
) -> None:
    """Embed a file of texts, without a server. Continue an interrupted run with --resume."""
    if resume and VectorFile.ended(out):
        typer.echo(f"{out} is complete already", err=True)
        return
    options = Options(models, parser, device)
    choice = Choice(model, dimensions, normalize, truncate)
    console = Console(stderr=True)
    rows = asyncio.run(
        embed_file(
            file, out, options, choice, format=format, field=field, resume=resume, console=console
        )
    )
    typer.echo(f"{out}: {rows} rows", err=True)


async def embed_file(
    source: str,
    out: Path,
    options: Options,
    choice: Choice,
    *,
    format: Format | None = None,
    field: str = "text",
    resume: bool = False,
    console: Console,
) -> int:
    """Embed each text of `source` ("-" is stdin) into a row of `out`, in order; return their number.

    Raises CommandError and the errors of the runtime.
    """
    format = format or format_of(source)
    check_free(out)
    with _open(source) as file:
        texts = Texts(file, "stdin" if source == "-" else source, format, field)
        async with running(options) as service:
            inference = service.bind("embed", choice.model)
            card = inference.card
            _check_dimensions(choice, card)
            made_from = {
                **asdict(choice),
                "model": f"{card.name} {card.version}",
                "format": format,
                "field": field,
            }
            with VectorFile(out, made_from, resume=resume) as vectors, _bar(console) as bar:
                task = bar.add_task(out.name, total=_size(file), rows=0)
                rows = iter(texts)
                if vectors.resumed:
                    vectors.skip(row.text for row in islice(rows, vectors.resumed["rows"]))
                while chunk := _chunk(rows):
                    await _embed(inference, chunk, texts, choice, vectors)
                    bar.update(task, completed=texts.bytes, rows=vectors.rows)
                vectors.finish()
    return vectors.rows


async def _embed(
    inference: Inference, chunk: Sequence[Row], texts: Texts, choice: Choice, vectors: VectorFile
) -> None:
    inputs = [row.text for row in chunk]
    paths = [f"{texts.name}:{row.line}: the text" for row in chunk]
    result = await inference.embed(
        Inputs(inputs, paths),
        truncate=choice.truncate,
        normalize=choice.normalize,
        dimensions=choice.dimensions,
    )
    vectors.append(inputs, result.value)


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


def _open(source: str) -> AbstractContextManager[BinaryIO]:
    if source == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(source).open("rb")
    except OSError as error:
        raise CommandError(f"cannot read {source}: {error.strerror}") from error


def _size(file: BinaryIO) -> int | None:
    """Bytes of a regular file; None for a pipe."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]} rows"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
