"""evaluate: how well a classifier does on a user's own file: accuracy, each class, confusion, calibration."""

import json
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from heedful.cli import options
from heedful.cli.answers import Answerer, ModelChoice, loaded_answerer
from heedful.cli.errors import CommandError
from heedful.cli.placement import Place
from heedful.cli.scores import CLASS_COLUMNS, Scores, class_cells, confusions
from heedful.cli.texts import Dialect, Source, Texts, chunks
from heedful.files.labels import spelled
from heedful.files.rows import similar
from heedful.text.invisible import is_blank

MOST_CLASSES = 10
"""Above it the most frequent confusions are listed in place of a table."""
MOST_CONFUSIONS = 15


def command(
    file: options.TextsFile,
    model: options.Name = None,
    label_column: Annotated[str, typer.Option(help="Column of the labels.")] = "label",
    text_column: options.TextColumn = "text",
    premise_column: options.PremiseColumn = None,
    hypothesis_column: options.HypothesisColumn = None,
    labels: options.Labels = "",
    format: options.TextsFormat = None,
    encoding: options.Encoding = "",
    delimiter: options.Delimiter = "",
    as_json: Annotated[bool, typer.Option("--json", help="JSON, not tables.")] = False,
    models: options.Models = options.MODELS,
    parser: options.ServedParser = None,
) -> None:
    """Score a model on your own labelled file: accuracy, each label, confusion and calibration.

    Example: heedful evaluate mails.csv --model bundles/mails --text-column body --label-column topic
    """
    choice = ModelChoice.of(model, labels, premise_column, hypothesis_column)
    place = Place(models, parser)
    columns = choice.columns(place, text_column, labels=label_column)
    source = Source(file, format, columns, Dialect(encoding, delimiter))
    evaluate_file(source, choice, place, as_json=as_json)


def evaluate_file(source: Source, choice: ModelChoice, place: Place, *, as_json: bool) -> None:
    """Print the scores on the labels in the column `source.columns.id`. Raises CommandError, StartupError."""
    with source.open(blank=True) as texts, loaded_answerer(choice, place) as answerer:
        if answerer.multi_label or not answerer.labels:
            raise CommandError(
                f"{answerer.card.name} gives {'several labels a text' if answerer.labels else 'no labels'}: "
                "--label-column is for models of one label a text"
            )
        scores, left_out = _scores(answerer, texts)
    report = {
        "model": answerer.card.name,
        "version": answerer.card.version,
        "file": texts.name,
        "left_out": left_out,
        "labels": list(scores.names),
        **scores.summary(),
    }
    if as_json:
        typer.echo(json.dumps(report, indent=2))
        return
    _print(report, len(answerer.labels), Console(soft_wrap=True))


def _scores(answerer: Answerer, texts: Texts) -> tuple[Scores, int]:
    """Scores on the rows with text and label, and the number of others. Raises CommandError without a known label."""
    numbers = {spelled(label): number for number, label in enumerate(answerer.labels)}
    labels, answers, answered, left_out = [], [], [], 0
    for chunk in chunks(iter(texts)):
        rows = [row for row in chunk if not any(map(is_blank, (*row.texts, row.id or "")))]
        left_out += len(chunk) - len(rows)
        if not rows:
            continue
        probabilities, _ = answerer.scores(rows, texts.name)
        answers.append(probabilities)
        answered += [label is not None for label in answerer.predicted(probabilities)]
        labels += [numbers.setdefault(spelled(row.id or ""), len(numbers)) for row in rows]
    if not set(labels) & set(range(len(answerer.labels))):
        other = list(numbers)[len(answerer.labels) :]
        guess = similar(other[0], answerer.labels) if other else ""
        raise CommandError(
            f"{texts.name}: no row has a label of {answerer.card.name}, {', '.join(answerer.labels[:10])}; "
            f"--label-column has {', '.join(other[:10]) or 'none'}{guess}"
        )
    return Scores(
        list(numbers), np.array(labels), np.concatenate(answers), np.array(answered)
    ), left_out


def _print(report: dict[str, Any], class_count: int, console: Console) -> None:
    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    left_out = (
        f", {report['left_out']} left out that lack a text or a label" if report["left_out"] else ""
    )
    say(f"{report['file']}: {report['rows']} rows{left_out}; {report['model']} {report['version']}")
    say(
        f"accuracy {report['accuracy']:.3f} ({report['low']:.3f} to {report['high']:.3f}), "
        f"macro-F1 {report['macro_f1']:.3f}, log loss {report['log_loss']:.3f}, "
        f"calibration error {report['calibration_error']:.3f}"
    )
    if report["answered"] < report["rows"]:
        answered = f"it answers {report['answered']} of {report['rows']} rows"
        right = report["accuracy_of_answered"]
        say(answered if right is None else f"{answered}, {right:.3f} of them rightly")
    if other := report["labels"][class_count:]:
        say(f"labels that the model does not know, which count as wrong: {', '.join(other)}")
    grid = Table(*CLASS_COLUMNS, box=SIMPLE_HEAD)
    for cells in class_cells(report["classes"]):
        grid.add_row(*cells)
    console.print(grid)
    if len(report["labels"]) <= MOST_CLASSES:
        names = report["labels"]
        table = Table("label \\ answer", *names, box=SIMPLE_HEAD)
        for name, row in zip(names, report["confusion"], strict=True):
            table.add_row(name, *map(str, row))
        console.print(table)
        return
    for count, label, answer in confusions(report["labels"], report["confusion"])[:MOST_CONFUSIONS]:
        say(f"{count} rows of {label} are answered {answer}")
