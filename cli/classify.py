"""classify: the label of every row of a Parquet file, on all cores of one machine or of many."""

from typing import Annotated

import typer
from rich.console import Console

from heedful.cli.options import (
    MODELS,
    RAY,
    ROWS_PER_FILE,
    Actors,
    Id,
    Models,
    Name,
    Out,
    Resume,
    RowsPerFile,
    RunsOn,
    ServedParser,
    Table,
    Truncate,
)


def command(
    file: Table,
    out: Out,
    id_column: Id,
    text_column: Annotated[str, typer.Option(help="Column of the text.")] = "text",
    model: Name = None,
    truncate: Truncate = False,
    resume: Resume = False,
    ray: Annotated[str, RAY] = "local",
    actors: Actors = None,
    rows_per_file: RowsPerFile = ROWS_PER_FILE,
    models: Models = MODELS,
    parser: ServedParser = None,
    device: RunsOn = "auto",
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
