"""Options that several commands share."""

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.texts import Format
from heedful.runtime.bundles import shipped
from heedful.runtime.device import Device
from heedful.training.data_folder import DEFAULT, PAGE, VARIABLE
from heedful.training.errors import ConfigError

DATA = DEFAULT
MODELS = shipped.models_folder()
PARSER = str(shipped.parser_folder(MODELS))
"""The pipeline next to the default folder of bundles."""

Data = Annotated[Path, typer.Option(envvar=VARIABLE, help=f"Folder of the datasets ({PAGE}).")]
Tasks = Annotated[
    str,
    typer.Option(
        envvar="HEEDFUL_TASKS",
        help="Python module with more tasks, as a list TASKS, in the working folder or installed.",
    ),
]
Parser = Annotated[str, typer.Option(help="spaCy pipeline, a folder or a package.")]
BundleParser = Annotated[
    str | None,
    typer.Option(
        "--parser",
        help="spaCy pipeline, a folder or a package; default: the folder `parser` next to the bundle.",
    ),
]
Models = Annotated[Path, typer.Option(envvar="HEEDFUL_MODELS", help="Folder of the bundles.")]
ServedParser = Annotated[
    str | None,
    typer.Option(
        envvar="HEEDFUL_PARSER",
        help="spaCy pipeline that splits and parses texts; default <models>/parser, or the shipped one.",
    ),
]
Encoding = Annotated[str, typer.Option(help="Encoding of the file, such as cp1252; default UTF-8.")]


def _delimiter(typed: str) -> str:
    """The delimiter of an option; \\t is a tab, which a shell does not type. Raises BadParameter."""
    delimiter = "\t" if typed == "\\t" else typed
    if len(delimiter) > 1 or delimiter in ('"', "\r", "\n"):
        raise typer.BadParameter(rf"{typed!r}: give one character, as ';', or \t for a tab")
    return delimiter


Delimiter = Annotated[
    str,
    typer.Option(
        help=r"What divides a .csv file's columns, as ';', or \t for a tab; default: detected.",
        callback=_delimiter,
    ),
]
Threads = Annotated[int, typer.Option(min=1, help="Threads of torch.")]
AllThreads = Annotated[int | None, typer.Option(min=1, help="Threads of torch; default all cores.")]
Runs = Annotated[Path, typer.Option(help="Folder of the runs; the same command continues its run.")]
RUNS = Path("runs")
Url = Annotated[str, typer.Option(help="Address of the running service.")]
URL = "http://127.0.0.1:8000"

Name = Annotated[
    str | None,
    typer.Option(
        help="A bundle's name, as `heedful list` has it, or folder; default: the best for the command."
    ),
]
TextsFile = Annotated[
    str,
    typer.Argument(
        help="Texts: .jsonl, .csv, .tsv, .txt (one a line), each maybe with .gz, or .parquet; - is stdin."
    ),
]
TextsFormat = Annotated[
    Format | None, typer.Option(help="Format of the texts; default by the suffix, txt for stdin.")
]
TextColumn = Annotated[
    str, typer.Option("--text-column", "--field", help="JSON field or column with the text.")
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id-column", "--id-field", help="Field or column of an id to write with each answer."
    ),
]
PremiseColumn = Annotated[
    str | None, typer.Option(help="Column of a pair's premise; default premise.")
]
HypothesisColumn = Annotated[
    str | None, typer.Option(help="Column of a pair's hypothesis; default hypothesis.")
]
Labels = Annotated[
    str, typer.Option(help="Labels of your own, with commas between, without training (zero-shot).")
]
Resume = Annotated[bool, typer.Option(help="Continue what an interrupted run left.")]
RunsOn = Annotated[
    Device,
    typer.Option(envvar="HEEDFUL_DEVICE", help="Where models run; auto: a GPU if there is one."),
]
Ray = Annotated[
    str | None,
    typer.Option(
        help="Ray cluster to run on: local (this machine's cores), auto (this machine's cluster) or host:port."
    ),
]
Actors = Annotated[
    int | None, typer.Option(min=1, help="Maximum of models, one core each; default all cores.")
]
RowsPerFile = Annotated[
    int | None,
    typer.Option(min=1, help="Rows that one model answers and writes at a time; default 10,000."),
]


def command_line() -> str:
    """The command line, for a card."""
    return shlex.join(["heedful", *sys.argv[1:]])


def require_free(out: Path, *read: Path) -> None:
    """Raise ConfigError where `out` names no bundle or is a folder of `read`, BundleError where it holds no bundle."""
    from heedful.export.bundle_writer import check_replaceable  # spaCy, and with it torch

    if not re.fullmatch(r"[a-z0-9-]+", out.name):
        raise ConfigError(f"--out: {out.name!r} names no bundle: use a-z, 0-9 and -")
    if out.resolve() in {folder.resolve() for folder in read}:
        raise ConfigError(
            f"--out: {out} would replace the bundle that is read: name another folder"
        )
    check_replaceable(out)


def pipeline_of(bundle: Path) -> str | None:
    """The spaCy pipeline next to a bundle, else the installed one; None without both: English rules split words."""
    pipeline = shipped.parser_folder(bundle.parent)
    return str(pipeline) if pipeline.is_dir() else None


def parser_for(bundle: Path, parser: str | None) -> str:
    """`parser` if it is named, else the pipeline of `heedful.load`: the one next to the bundle, or a shipped one."""
    return parser or str(shipped.parser_folder(bundle.resolve().parent))
