"""train: one run of an encoder or of its teacher, or the dependency parser."""

from pathlib import Path
from typing import Annotated, Literal

import torch
import typer
from rich.console import Console

from heedful.cli.options import DATA, PARSER, Data, Threads, TrainsOn
from heedful.cli.train_arc_parser import write_arc_parser
from heedful.runtime.bundles import shipped
from heedful.training import config, cross_encoder, cross_encoder_training
from heedful.training.config import Paths
from heedful.training.loop import train
from heedful.training.optimise import enough_memory
from heedful.training.parser import train_parser


def command(
    target: Annotated[str, typer.Argument(help="A run's TOML file, or `parser`.")],
    run: Annotated[
        Path | None, typer.Option(help="Folder of the run; default: runs/ and the file's name.")
    ] = None,
    data: Data = DATA,
    parser: Annotated[
        str | None,
        typer.Option(
            help="spaCy pipeline, a folder or a package; default: the shipped one. With `parser`: the folder "
            "to write, by default bundles/parser."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue from the run's last epoch.")] = False,
    threads: Threads = 1,
    device: TrainsOn = None,
    kind: Annotated[
        Literal["arc", "transition"],
        typer.Option(help="Kind of parser: the arc parser, or spaCy's transition parser."),
    ] = "arc",
) -> None:
    """Train an encoder for a task, its teacher, or a dependency parser."""
    torch.set_num_threads(threads)
    console = Console()
    if target == "parser":
        cache = Path(".cache/parser")
        out = Path(parser) if parser else shipped.HERE / shipped.PARSER
        if kind == "arc":
            cache = Path(".cache/arc-parser")
            scores = write_arc_parser(data, out, seed=1, cache=cache, console=console)
        else:
            scores = train_parser(data, out, seed=1, cache=cache, console=console)
        console.print(f"EWT test, gold sentences: {scores}")
        return
    file = Path(target)
    fields = config.load(file) | ({"device": device} if device else {})
    folder = run or Path("runs") / file.stem
    paths = Paths(folder, data, parser or PARSER, Path(".cache/parses"), file)
    with enough_memory(file):
        if fields.get("kind") == cross_encoder.KIND:
            cross_encoder_training.fine_tune(
                cross_encoder.validate(fields, file), paths, resume=resume, console=console
            )
        else:
            train(config.validate(fields, file), paths, resume=resume, console=console)
