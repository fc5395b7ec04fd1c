"""reproduce: every run of a table that has no record yet, trained, exported, served and measured."""

from pathlib import Path
from typing import Any

from rich.console import Console

from commands.serving import server
from export import run as runs
from export.bundle import export_bundle
from training import checkpoint, tables, tasks
from training.config import RunConfig
from training.evaluate import measure
from training.files import write_json
from training.loop import Paths, train
from training.tables import RowConfig


def reproduce(
    table: str, results: Path, folder: Path, *, data: Path, parser: str, console: Console
) -> None:
    """Leave a record a run in `results/runs/<table>`; runs lie under `folder` and go on where they stopped.

    Raises ConfigError for an unknown table, and what training, export and the service raise.
    """
    wanted = tables.read(results / "tables" / f"{table}.toml")
    for row in wanted.rows:
        for name, config in row.runs(wanted.seeds).items():
            record = results / "runs" / table / f"{name}.json"
            if record.exists():
                continue
            console.print(f"{table}: {name}")
            paths = Paths(folder / table / name, data, parser, Path(".cache/parses"), row.config)
            found = _run(row, config, paths, console)
            record.parent.mkdir(parents=True, exist_ok=True)
            write_json(record, found)


def _run(row: RowConfig, config: RunConfig, paths: Paths, console: Console) -> dict[str, Any]:
    resume = (paths.run / checkpoint.LAST).exists()
    trained = train(config, paths, resume=resume, console=console)
    bundle = paths.run / f"{config.encoder.name}-{trained['task'].replace(':', '-')}"
    card = export_bundle(runs.read(paths.run), bundle)
    with server(str(bundle), url="", parser=paths.parser) as predictor:
        scores = measure(tasks.get(config.task), "test", paths.data, predictor)
    return {
        "row": row.name,
        "config": config.model_dump(mode="json"),
        "parameters": card.encoder.parameters,
        "epochs": trained["epochs"],
        "dev": trained["dev"],
        "scores": [score.as_dict() for score in scores],
        "data": trained["data"],
        "commit": trained["commit"],
    }
