"""classify: the label of every row of a Parquet file, on all cores of one machine or of many."""

from typing import Annotated

import typer
from rich.console import Console

from heedful.cli import options


def command(
    file: options.Table,
    out: options.Out,
    id_column: options.Id,
    text_column: Annotated[str, typer.Option(help="Column of the text.")] = "text",
    model: options.Name = None,
    truncate: options.Truncate = False,
    resume: options.Resume = False,
    ray: Annotated[str, options.RAY] = "local",
    actors: options.Actors = None,
    rows_per_file: options.RowsPerFile = options.ROWS_PER_FILE,
    models: options.Models = options.MODELS,
    parser: options.ServedParser = None,
    device: options.RunsOn = "auto",
) -> None:
    """Classify every row of a Parquet file or folder, on a Ray cluster.

    Example: heedful classify reviews.parquet --id-column id --out labels
    """
    from heedful.cli.ray_run import Cluster, Job, run  # needs pyarrow, --help does not

    job = Job(
        *("classify", file, out, [text_column], id_column, model),
        keywords={"truncate": truncate},
        models=models,
        parser=parser,
        device=device,
    )
    run(
        job,
        Cluster(ray, actors, rows_per_file),
        resume=resume,
        console=Console(stderr=True, soft_wrap=True),
    )
