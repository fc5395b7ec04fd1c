"""reproduce: train, export and measure every run of a table that has no record of its configuration.

A run that another table has too is not repeated: its record is copied.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from heedful.cli.options import DATA, PARSER, Data, Parser, Threads
from heedful.export import run as runs
from heedful.export.bundle import export_bundle
from heedful.files.atomic import write_json
from heedful.training import checkpoint, tasks
from heedful.training.config import CACHE, Device, Paths, Precision, RunConfig
from heedful.training.errors import ConfigError
from heedful.training.loop import train
from heedful.training.source_commit import source_commit
from tools import paper_tables, papers
from tools.local_model import open_folder
from tools.options import Results
from tools.scoring import measure


def command(
    table: Annotated[
        str | None, typer.Argument(help="A table of results/tables, such as lama-r8.")
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--all", help="List the papers' tables and figures; train nothing.")
    ] = False,
    results: Results = Path("results"),
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs/reproduce"),
    data: Data = DATA,
    parser: Parser = PARSER,
    threads: Threads = 1,
    precision: Annotated[
        Precision | None,
        typer.Option(help="Precision of the products in training; default: the table's."),
    ] = None,
    device: Annotated[
        Device | None, typer.Option(help="Instead of the configuration's device.")
    ] = None,
) -> None:
    """Train and measure every run of a paper's table that has no record yet."""
    if list_all == (table is not None):
        raise typer.BadParameter(
            "give a table of results/tables, or --all to list the tables and figures"
        )
    if table is None:
        for line in papers.catalogue(results):
            missing = f"; not here: {line.missing}" if line.missing else ""
            typer.echo(f"{line.paper}, {line.item}: {line.here}{missing}")
        return
    if (commit := source_commit()).endswith("-dirty"):
        raise ConfigError(
            f"the tree is {commit}: commit the changes, so that the record can name its source"
        )
    torch.set_num_threads(threads)
    reproduce(
        table,
        results,
        runs,
        data=data,
        parser=parser,
        console=Console(),
        precision=precision,
        device=device,
    )
    typer.echo(f"records are in {results}/runs/{table}: `python -m tools report` writes them up")


def reproduce(
    table: str,
    results: Path,
    folder: Path,
    *,
    data: Path,
    parser: str,
    console: Console,
    precision: Precision | None = None,
    device: Device | None = None,
) -> None:
    """Write a record per run to `results/runs/<table>`; runs live under `folder` and resume where they stopped.

    `precision` and `device` replace the table's in the runs that have no record. Raises ConfigError for an unknown
    table, and the errors of training, export and the runtime.
    """
    table_config = paper_tables.read(results / "tables" / f"{table}.toml")
    for row in table_config.rows:
        for name, config in row.runs(table_config.seeds).items():
            record = results / "runs" / table / f"{name}.json"
            if record.exists() and paper_tables.is_of(
                json.loads(record.read_text("utf-8")), config
            ):
                continue
            console.print(f"{table}: {name}")
            if precision:
                config = paper_tables.in_precision(config, precision)
            if device:
                config = config.model_copy(update={"device": device})
            paths = Paths(folder / table / name, data, parser, CACHE, row.config)
            content = paper_tables.measured(results, config) or _run(config, paths, console)
            record.parent.mkdir(parents=True, exist_ok=True)
            write_json(record, {**content, "row": row.name})


def _run(config: RunConfig, paths: Paths, console: Console) -> dict[str, Any]:
    trained = train(config, paths, resume=True, console=console)
    bundle = paths.run / f"{config.encoder.name}-{trained['task'].replace(':', '-')}"
    card = export_bundle(runs.read(paths.run), bundle)
    with open_folder(bundle, paths.parser) as model:
        task = tasks.get(config.task)
        scores = measure(task, "test", paths.data, model)
        learned = measure(task, "train", paths.data, model)[0]
    return {
        "config": config.model_dump(mode="json"),
        "parameters": card.encoder.parameters,
        "epochs": trained["epochs"],
        "dev": trained["dev"],
        "train": learned.as_dict(),
        "log": [json.loads(line) for line in (paths.run / checkpoint.LOG).read_text().splitlines()],
        "scores": [score.as_dict() for score in scores],
        "data": trained["data"],
        "commit": trained["commit"],
    }
