"""train: one run of an encoder or of a cross-encoder, which teaches encoders."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from heedful.cli.options import DATA, PARSER, Data, Parser, Tasks, Threads
from heedful.training import config
from heedful.training import tasks as task_registry
from heedful.training.config import Paths


def command(
    file: Annotated[Path, typer.Argument(metavar="CONFIG", help="The run's TOML file.")],
    run: Annotated[
        Path | None, typer.Option(help="Folder of the run; default: runs/ and the file's name.")
    ] = None,
    data: Data = DATA,
    parser: Parser = PARSER,
    resume: Annotated[bool, typer.Option(help="Continue from the run's last epoch.")] = False,
    threads: Threads = 1,
    device: Annotated[
        config.Device | None, typer.Option(help="Instead of the configuration's device.")
    ] = None,
    tasks: Tasks = "",
) -> None:
    """Train an encoder for a task, or a cross-encoder that teaches encoders, as a TOML file says.

    Example: heedful train configs/ms-san-sst2.toml
    """
    import torch  # here, so that --help needs no training extra

    from heedful.training.loop import train
    from heedful.training.optimise import enough_memory

    torch.set_num_threads(threads)
    task_registry.add(tasks)
    console = Console()
    fields = config.load(file) | ({"device": device} if device else {})
    paths = Paths(run or Path("runs") / file.stem, data, parser, config.CACHE, file)
    with enough_memory(file):
        train(config.validate(fields, file), paths, resume=resume, console=console)
