"""`heedful`: the table of its commands. A command's file is imported when that command runs."""

import sys
from importlib import import_module

import typer

from heedful.cli.errors import NO_STORAGE, USER_ERRORS, describe, missing_extra

COMMANDS = {
    "serve": "Serve the bundles over HTTP.",
    "embed": "Embed a file of texts, without a server.",
    "classify": "Label every row of Parquet files, on a Ray cluster.",
    "nli": "Label every pair of texts of Parquet files, on a Ray cluster.",
    "explain": "Write what a model attends to as one HTML page or SVG, without a server.",
    "models": "List every encoder with its paper, output size and parameters.",
    "train": "Train an encoder for a task, or a dependency parser.",
    "label": "Store a teacher's vectors of the texts that an embedding learns from.",
    "export": "Write a run's best weights as a bundle: ONNX graphs, vocabulary and card.",
    "compact": "Copy what a bundle is made from, with the weights in 8 bits.",
    "calibrate": "Fit the temperature of bundles' probabilities on dev.",
    "centre": "Give unrelated sentences smaller cosines in bundles of embeddings.",
    "quantize": "Add int8 graphs to bundles, for the CPU.",
    "repack": "Store the word tables of bundles in 4 bits.",
    "compose": "Let bundles read unlisted words by their spelling.",
    "reparse": "Let bundles read another parser's trees.",
    "push": "Upload a bundle to the Hugging Face hub, with its parser and a model card.",
    "pull": "Download a bundle from the Hugging Face hub, and check its hashes.",
    "fit": "Train a classifier on your own texts, measure it and write its bundle.",
    "evaluate": "Score a model on a task's split.",
    "selftest": "Run the golden sentences of a service or of bundles, or write them.",
}
"""Each is `command` in the file of its name: options and work."""

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def heedful() -> None:
    """Small self-attentive sentence encoders: train, export, serve."""


def run(context: typer.Context) -> None:
    """Import the command's file, and let its options read the arguments, `--help` among them."""
    name = context.info_name
    module = import_module(f"heedful.cli.{name}")
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command.command()(module.command)
    command(args=context.args, prog_name=f"heedful {name}")


for _name, _summary in COMMANDS.items():
    app.command(
        _name,
        help=_summary,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(run)


def main() -> None:
    """The console script. An error meant for the user is printed without a traceback; exit status 1."""
    try:
        app()
    except USER_ERRORS as error:
        sys.exit(describe(error))
    except OSError as error:
        if error.errno not in NO_STORAGE:
            raise
        sys.exit(describe(error))
    except ModuleNotFoundError as error:
        if said := missing_extra(error, *sys.argv[1:]):
            sys.exit(said)
        raise
