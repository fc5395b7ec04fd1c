"""heedful: the command line, and the one place where the packages meet."""

import inspect
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from heedful.app import settings as service_settings
from heedful.app.settings import SettingsError
from heedful.cli.errors import BulkError
from heedful.export.errors import ExportError
from heedful.runtime.errors import HeedfulError
from heedful.text.errors import ParserError
from heedful.training.errors import TrainingError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

Models = Annotated[
    Path, typer.Option(envvar=service_settings.environment_name("models"), help="Bundle folder.")
]
ServedParser = Annotated[
    str | None,
    typer.Option(
        envvar=service_settings.environment_name("parser"),
        help="spaCy pipeline; default <models>/parser.",
    ),
]
Parser = Annotated[str, typer.Option(help="spaCy pipeline, a folder or a package.")]
Data = Annotated[Path, typer.Option(help="Folder of the datasets.")]


@app.callback()
def heedful() -> None:
    """Small self-attentive sentence encoders: train, export, serve."""


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for each field of Settings, with the name and the help of that."""
    flags = [
        inspect.Parameter(
            field,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                str | None,
                typer.Option(
                    service_settings.flag_name(field),
                    metavar=service_settings.type_name(field),
                    help=service_settings.help_text(field),
                    show_default=False,
                ),
            ],
        )
        for field in service_settings.Settings.model_fields
    ]
    command.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]  # what typer reads
    command.__annotations__ = {flag.name: flag.annotation for flag in flags}
    return command


@app.command()
@with_settings
def serve(**flags: Any) -> None:
    """Serve the bundles over HTTP. Each flag is also a variable of the environment."""
    settings = service_settings.load(**{k: v for k, v in flags.items() if v is not None})
    from heedful.app.serving import serve

    serve(settings)


@app.command()
def openapi() -> None:
    """Print the OpenAPI document of the service."""
    import json

    from heedful.app.main import create_app
    from heedful.app.settings import Settings

    typer.echo(json.dumps(create_app(Settings()).openapi(), indent=1, ensure_ascii=False))


@app.command()
def embed(
    file: Annotated[
        str, typer.Argument(help="Texts: .jsonl, .csv, .txt (one a line), - is stdin.")
    ],
    out: Annotated[Path, typer.Option(help="Vectors: .jsonl or .npy, a row for each text.")],
    format: Annotated[
        Literal["jsonl", "csv", "txt"] | None,
        typer.Option(help="Of the texts; default by the suffix, txt for stdin."),
    ] = None,
    field: Annotated[
        str,
        typer.Option("--field", "--text-column", help="JSON field or CSV column with the text."),
    ] = "text",
    model: Annotated[str | None, typer.Option(help="Name of a bundle; default as `serve`.")] = None,
    dimensions: Annotated[
        int | None, typer.Option(help="Keep so many values of each vector, the first ones.")
    ] = None,
    normalize: Annotated[bool, typer.Option(help="Scale each vector to length 1.")] = True,
    truncate: Annotated[
        bool, typer.Option(help="Cut texts that the model cannot read whole.")
    ] = False,
    resume: Annotated[bool, typer.Option(help="Go on with what an earlier run has left.")] = False,
    models: Models = Path("bundles"),
    parser: ServedParser = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(envvar=service_settings.environment_name("device"), help="Where models run."),
    ] = "auto",
) -> None:
    """Embed a file of texts, without a server. A run that was broken off goes on with --resume."""
    import asyncio

    from rich.console import Console

    from heedful.cli.embed import Choice, embed_file
    from heedful.cli.vectors import VectorFile
    from heedful.runtime.service import Options

    if resume and VectorFile.ended(out):
        typer.echo(f"{out} is whole already", err=True)
        return
    rows = asyncio.run(
        embed_file(
            file,
            out,
            Options(models, parser, device),
            Choice(model, dimensions, normalize, truncate),
            format=format,
            field=field,
            resume=resume,
            console=Console(stderr=True),
        )
    )
    typer.echo(f"{out}: {rows} rows", err=True)


@app.command()
def explain(
    text: Annotated[str, typer.Argument(help="A sentence; of a pair the first one.")],
    hypothesis: Annotated[
        str | None, typer.Option(help="The second sentence, for a model of pairs.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Name of a bundle; default as /explain.")
    ] = None,
    priors: Annotated[
        str, typer.Option(help="Other than as trained: dependency=false,alpha=0.5, for example.")
    ] = "",
    to: Annotated[Path, typer.Option(help="The file: .html or .svg.")] = Path("explain.html"),
    models: Models = Path("bundles"),
    parser: ServedParser = None,
) -> None:
    """Write what a model attends to as one HTML page or SVG, without a server."""
    from heedful.cli.explain import Question, write
    from heedful.runtime.service import Options

    question = Question(text, hypothesis, model, priors)
    write(question, to, Options(models, parser, "cpu", parse_workers=1))
    typer.echo(f"{to}", err=True)


@app.command()
def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List every encoder with its paper, its output size and its parameters without word vectors."""
    from heedful.models.registry import ENCODERS, summary

    summaries = {name: summary(name) for name in ENCODERS}
    if as_json:
        import json
        from dataclasses import asdict

        typer.echo(json.dumps({name: asdict(one) for name, one in summaries.items()}, indent=2))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None)
    for heading in ("encoder", "values", "weights", "with NLI head"):
        table.add_column(heading, no_wrap=True)
    table.add_column("paper")  # where a terminal is narrow, this is cut and not the names
    for name, one in summaries.items():
        counts = (f"{count:,}" for count in (one.dim, one.encoder, one.with_nli_head))
        table.add_row(name, *counts, Text(one.paper, no_wrap=True, overflow="ellipsis"))
    Console().print(table)


@app.command()
def train(
    target: Annotated[str, typer.Argument(help="A run's TOML file, or `parser`.")],
    run: Annotated[
        Path | None, typer.Option(help="Folder of the run; default: runs/ and the file's name.")
    ] = None,
    data: Data = Path("../shared/data"),
    parser: Parser = "bundles/parser",
    resume: Annotated[bool, typer.Option(help="Go on from the run's last epoch.")] = False,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
    kind: Annotated[
        Literal["transition", "head-scorer"],
        typer.Option(help="Of a parser: spaCy's own, or the fast one, made from it."),
    ] = "transition",
    start: Annotated[
        Path, typer.Option(help="For a head scorer: the transition parser to begin with.")
    ] = Path("bundles/parser"),
) -> None:
    """Train an encoder for a task, or a dependency parser."""
    import torch
    from rich.console import Console

    torch.set_num_threads(threads)
    if target == "parser":
        from heedful.cli.train_parser import write_head_scorer
        from heedful.training.parser import train_parser

        cache, console = Path(".cache/parser"), Console()
        if kind == "transition":
            scores = train_parser(data, Path(parser), seed=1, cache=cache, console=console)
        else:
            scores = write_head_scorer(
                data, Path(parser), start=start, seed=1, cache=cache, console=console
            )
        console.print(f"EWT test, gold sentences: {scores}")
        return

    from heedful.training import config
    from heedful.training.loop import Paths
    from heedful.training.loop import train as train_run

    file = Path(target)
    paths = Paths(run or Path("runs") / file.stem, data, parser, Path(".cache/parses"), file)
    train_run(config.read(file), paths, resume=resume, console=Console())


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path, typer.Option(help="The bundle: bundles/<encoder>-<task>.")],
    storage: Annotated[
        Literal["normal", "small"],
        typer.Option(help="small: int8 matrices, a large word table in 4 bits; for transformers."),
    ] = "normal",
) -> None:
    """Write a run's best weights as a bundle: ONNX graphs, vocabulary and card."""
    from heedful.export.bundle import export_bundle
    from heedful.export.run import read

    card = export_bundle(read(run), out, storage)
    typer.echo(
        f"{out}: version {card.version}, {card.parity.max_abs_error:.1e} from torch at most "
        f"over {card.parity.cases} cases"
    )


@app.command()
def quantize(
    bundles: Annotated[list[Path], typer.Argument(help="Bundles' folders.")],
    task: Annotated[
        str | None, typer.Option(help="Task to score them on; default: each card's own.")
    ] = None,
    data: Data = Path("../shared/data"),
    parser: Parser = "bundles/parser",
) -> None:
    """Add int8 graphs to bundles, for the CPU, unless score or vectors change too much."""
    from rich.console import Console

    from heedful.cli.quantize import quantize

    for bundle in bundles:
        card = quantize(bundle, task, data=data, parser=parser, console=Console())
        assert card.int8 is not None
        typer.echo(
            f"{bundle}: version {card.version}, {card.int8.metric} on {card.int8.dataset} dev "
            f"{card.int8.float32:.4f} -> {card.int8.int8:.4f}, cosine {card.int8.cosine:.5f} at least"
        )


@app.command()
def repack(
    bundles: Annotated[list[Path], typer.Argument(help="Bundles' folders.")],
    data: Data = Path("../shared/data"),
    parser: Parser = "bundles/parser",
) -> None:
    """Store bundles' word tables in 4 bits, which halves them, unless their scores fall too much."""
    from rich.console import Console

    from heedful.cli.repack import repack

    for bundle in bundles:
        card = repack(bundle, data=data, parser=parser, console=Console())
        typer.echo(f"{bundle}: version {card.version}")


@app.command()
def reparse(
    bundles: Annotated[list[Path], typer.Argument(help="Bundles' folders.")],
    parser: Annotated[str, typer.Option(help="spaCy pipeline to read from now on.")],
    instead_of: Annotated[str, typer.Option(help="The one that they read now.")] = "bundles/parser",
    data: Data = Path("../shared/data"),
) -> None:
    """Let bundles read another parser's trees, unless their scores fall too much."""
    from rich.console import Console

    from heedful.cli.reparse import reparse

    for bundle in bundles:
        card = reparse(bundle, parser, instead_of=instead_of, data=data, console=Console())
        typer.echo(f"{bundle}: version {card.version}, reads {card.parser.name}")


@app.command()
def fit(
    file: Annotated[Path, typer.Argument(help="Labelled texts: a .csv, .tsv or .jsonl file.")],
    label_column: Annotated[str, typer.Option(help="Column of the labels.")],
    out: Annotated[Path, typer.Option(help="The bundle: bundles/<encoder>-<task>.")],
    text_column: Annotated[str | None, typer.Option(help="Column of the texts.")] = None,
    pair_columns: Annotated[
        str | None, typer.Option(help="For pairs: the two columns, as premise,hypothesis.")
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="An encoder; `heedful models` lists them.")
    ] = "ms-san",
    vectors: Annotated[
        str, typer.Option(help="Word vectors: a bundle's folder, or a GloVe text file.")
    ] = "bundles/ms-san-nli",
    parser: Parser = "bundles/parser",
    seed: Annotated[int, typer.Option(help="Of the division and of the training.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
) -> None:
    """Train a classifier of your own texts, measure it and write its bundle."""
    import torch
    from rich.console import Console

    from heedful.cli.fit import fit_file

    if (text_column is None) == (pair_columns is None):
        raise typer.BadParameter("give --text-column or --pair-columns, one of them")
    columns = [text_column] if text_column else (pair_columns or "").split(",")
    if pair_columns and len(columns) != 2:
        raise typer.BadParameter("--pair-columns takes two names with a comma between")
    torch.set_num_threads(threads)
    card = fit_file(
        file,
        columns,
        label_column,
        encoder=encoder,
        word_vectors=vectors,
        out=out,
        run=Path("runs/fit") / out.name,
        parser=parser,
        seed=seed,
        command=shlex.join(["heedful", *sys.argv[1:]]),
        console=Console(),
    )
    beside = "" if (out.parent / "parser").is_dir() else f" --parser {parser}"
    typer.echo(
        f"{out}: version {card.version}; serve it with `heedful serve --models {out.parent}{beside}`"
    )


@app.command()
def evaluate(
    model: Annotated[
        str,
        typer.Argument(help="Name of a served bundle, such as ms-san-sst2, or a bundle's folder."),
    ],
    task: Annotated[str, typer.Argument(help="Task to score it on, such as sst2.")],
    split: Annotated[Literal["dev", "test"], typer.Option(help="Which split.")] = "dev",
    run: Annotated[
        Path | None, typer.Option(help="Keep the scores in this run's folder, for its next export.")
    ] = None,
    url: Annotated[str, typer.Option(help="The running service.")] = "http://127.0.0.1:8000",
    parser: Annotated[
        str, typer.Option(help="For a folder: the spaCy pipeline to serve it with.")
    ] = "bundles/parser",
    data: Data = Path("../shared/data"),
) -> None:
    """Score a model on a task's split: one of a running service, or a bundle's folder."""
    from heedful.cli.serving import server
    from heedful.training import tasks
    from heedful.training.evaluate import keep, measure

    with server(model, url=url, parser=parser) as predictor:
        scores = measure(tasks.get(task), split, data, predictor)
    for score in scores:
        if run:
            keep(score, run)
        typer.echo(
            f"{model} on {score.dataset} {split}: {score.metric} {score.value:.4f} ({score.rows} rows)"
        )


@app.command()
def transfer(
    model: Annotated[
        str, typer.Argument(help="Name of a served bundle, a bundle's folder, or minilm.")
    ],
    url: Annotated[str, typer.Option(help="The running service.")] = "http://127.0.0.1:8000",
    parser: Annotated[
        str, typer.Option(help="For a folder: the spaCy pipeline to serve it with.")
    ] = "bundles/parser",
    results: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("results"),
    data: Data = Path("../shared/data"),
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch, for MiniLM.")] = 1,
) -> None:
    """Measure frozen embeddings: logistic regression on five tasks, cosines on two, speed beside MiniLM."""
    import torch

    from heedful.cli.transfer import record

    torch.set_num_threads(threads)
    found = record(model, results, url=url, parser=parser, data=data)
    for name, value in (found["accuracy"] | found["similarity"]).items():
        typer.echo(f"{name}: {value:.4f}")
    typer.echo(
        f"{found['sentences_per_second']:.0f} sentences a second, MiniLM "
        f"{found['minilm_sentences_per_second']:.0f}"
    )


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(help="A table of results/tables, such as lama-r8.")],
    results: Annotated[Path, typer.Option(help="Folder of tables and records.")] = Path("results"),
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs/reproduce"),
    data: Data = Path("../shared/data"),
    parser: Parser = "bundles/parser",
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
) -> None:
    """Train and measure every run of a paper's table that has no record yet."""
    import torch
    from rich.console import Console

    from heedful.cli.reproduce import reproduce

    torch.set_num_threads(threads)
    reproduce(table, results, runs, data=data, parser=parser, console=Console())
    typer.echo(f"records are in {results}/runs/{table}: `heedful report` writes them up")


@app.command()
def report(
    out: Annotated[Path, typer.Option(help="The page.")] = Path("docs/results.md"),
    bundles: Annotated[Path, typer.Option(help="Folder of the bundles.")] = Path("bundles"),
    results: Annotated[Path, typer.Option(help="Folder of tables and records.")] = Path("results"),
) -> None:
    """Write docs/results.md from the cards and the records."""
    from heedful.training.files import write_whole
    from heedful.training.report import report

    page = report(bundles, results)
    write_whole(out, lambda part: part.write_text(page, encoding="utf-8"))


@app.command()
def figures(
    out: Annotated[Path, typer.Option(help="Folder of the figures.")] = Path("docs/figures"),
    bundles: Annotated[Path, typer.Option(help="Folder of the bundles.")] = Path("bundles"),
    parser: Annotated[
        str | None, typer.Option(help="spaCy pipeline; default <bundles>/parser.")
    ] = None,
    data: Data = Path("../shared/data"),
) -> None:
    """Draw the papers' figures from the bundles: attention, gates, accuracy by length."""
    from rich.console import Console

    from heedful.cli.figures import draw
    from heedful.runtime.service import Options

    draw(out, Options(bundles, parser, "cpu", parse_workers=1), data, Console())


def main() -> None:
    """The console's entry: an error that is meant for the user is one line on stderr, and exit status 1."""
    try:
        app()
    except (
        HeedfulError,
        ParserError,
        TrainingError,
        ExportError,
        SettingsError,
        BulkError,
    ) as error:
        sys.exit(f"heedful: {error}")


if __name__ == "__main__":
    main()
