"""`heedful`: the table of its commands. A command's file is imported when that command runs."""

import sys
from importlib import import_module
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from heedful.cli.errors import NO_STORAGE, USER_ERRORS, describe, missing_extra
from heedful.cli.streams import fill_closed

GROUPS = {
    "Use": {
        "serve": "Serve bundles over HTTP.",
        "embed": "Texts of a file to vectors.",
        "predict": "The label and the score of each row of a file.",
        "explain": "What a model attends to in a text, as an HTML page.",
    },
    "Make": {
        "fit": "Train a classifier on your labelled texts, and write its bundle.",
        "train": "Train an encoder as a TOML file says.",
        "distill": "Train a small encoder to give a large one's vectors.",
        "import": "A sentence encoder of transformers to a bundle.",
        "tune": "Train an embedding on your pairs of texts, and write its bundle.",
        "export": "A finished run to a bundle, measured.",
    },
    "Share": {
        "list": "The bundles that can be loaded, and what each does.",
        "push": "A bundle to the Hugging Face hub.",
        "pull": "A bundle from the Hugging Face hub.",
    },
    "Check": {
        "evaluate": "Score a model on your labelled file.",
        "selftest": "Whether a model still gives the vectors of its export.",
    },
}
"""A command is the function `command` in the file of its name: options and work."""
COMMANDS = [name for group in GROUPS.values() for name in group]

INTERRUPTED = 130
"""Exit status of the SystemExit that typer raises for Ctrl-C."""
STOPPED = {
    "distill": "the same command goes on where it was",
    "tune": "the same command goes on where it was",
    "train": "with --resume it goes on from its last epoch or checkpoint",
    "fit": "the same command starts over",
}
"""Commands that take long -> what Ctrl-C leaves of their work."""


def help_text() -> str:
    """The commands by group, on one screen."""
    groups = [
        "\n".join([group, *(f"  {name:10} {summary}" for name, summary in commands.items())])
        for group, commands in GROUPS.items()
    ]
    head = "Usage: heedful COMMAND ..\n\nUse, train and serve small sentence encoders; a bundle is a model's folder."
    end = "`heedful COMMAND --help` has its options; `heedful --version`."
    return "\n\n".join([head, *groups, end])


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True, context_settings={"help_option_names": []})
def heedful(
    context: typer.Context,
    help_: Annotated[bool, typer.Option("--help", help="Print the commands.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Small self-attentive sentence encoders: use, train and serve them."""
    if version:
        typer.echo(f"heedful {installed_version('heedful')}")
        raise typer.Exit
    if help_ or context.invoked_subcommand is None:
        typer.echo(help_text())
        raise typer.Exit


def run(context: typer.Context) -> None:
    """Import the command's file, and parse the arguments, `--help` among them, by its options."""
    name = context.info_name
    module = import_module(f"heedful.cli.{name}")
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command.command()(module.command)
    command(args=context.args, prog_name=f"heedful {name}")


for _name in COMMANDS:
    app.command(
        _name,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(run)


def main() -> None:
    """The console script. An error meant for the user is printed without a traceback; exit status 1."""
    fill_closed()
    try:
        app()
    except SystemExit as ended:
        if ended.code == INTERRUPTED and (remedy := STOPPED.get(sys.argv[1])):
            typer.echo(f"heedful: stopped: {remedy}", err=True)
        raise
    except USER_ERRORS as error:
        sys.exit(describe(error))
    except OSError as error:
        if error.errno not in NO_STORAGE:
            raise
        sys.exit(describe(error))
    except ModuleNotFoundError as error:
        if remedy := missing_extra(error, *sys.argv[1:]):
            sys.exit(remedy)
        raise
