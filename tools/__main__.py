"""`python -m tools COMMAND`: the repository's own commands, each the function `command` of its file."""

import sys
from importlib import import_module

import typer

from heedful.cli.errors import USER_ERRORS, describe
from heedful.training import tasks

COMMANDS = {
    "label": "Store a teacher's vectors of the texts that an embedding learns from.",
    "reproduce": "Train and measure every run of a paper's table that has no record yet.",
    "transfer": "Measure frozen embeddings on seven tasks, and their speed compared with MiniLM's.",
    "suite": "Score a bundle or a baseline on every development set of its kind.",
    "evaluate": "Score a served bundle, or a bundle's folder, on a split of a task.",
    "overlaps": "Count the test rows of every task that its train and dev splits hold too.",
    "report": "Write docs/results.md and docs/notes/results.md from the cards and the records.",
    "figures": "Draw the papers' figures from the bundles.",
    "trust": "Measure what bundles' attention is worth, or write docs/notes/attention.md.",
    "contrast": "Make pairs of sentences that differ in one word, for the tasks of NLI.",
    "everyday": "Judge the sentiment of sentences of broad text, for the task sentiment-everyday.",
    "unpack": "Make a run of what git holds of a model over MiniLM, in adapters/.",
    "average": "Make a run of the mean of two runs' weights.",
    "configuration": "Write docs/configuration.md, the fields of a run.",
    "openapi": "Print the OpenAPI document of the service.",
}


def main() -> None:
    """Run the command that the first argument names; without one, list them."""
    name, *arguments = sys.argv[1:] or [""]
    if name not in COMMANDS:
        sys.exit(
            "\n".join(f"python -m tools {name:13} {summary}" for name, summary in COMMANDS.items())
        )
    tasks.add("tools.tasks")
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(import_module(f"tools.{name}").command)
    try:
        app(args=arguments, prog_name=f"python -m tools {name}")
    except USER_ERRORS as error:
        sys.exit(describe(error))


if __name__ == "__main__":
    main()
