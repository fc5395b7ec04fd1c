"""evaluate: how well a classifier does on a user's own file: accuracy, each class, confusion, calibration."""

import json
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from heedful.cli import options
from heedful.cli.answers import Answerer, Asked, answering
from heedful.cli.errors import CommandError
from heedful.cli.placement import Place
from heedful.cli.scores import CLASS_COLUMNS, Scores, class_cells, confusions
from heedful.cli.texts import Dialect, Source, Texts, chunks
from heedful.files.labels import spelled
from heedful.files.rows import similar
from heedful.text.invisible import is_blank

MOST_CLASSES = 10
"""Above, the confusion table is a list of the most frequent confusions."""
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
    asked = Asked.of(model, labels, premise_column, hypothesis_column)
    place = Place(models, parser)
    columns = asked.columns(place, text_column, labels=label_column)
    source = Source(file, format, columns, Dialect(encoding, delimiter))
    evaluate_file(source, asked, place, as_json=as_json)


def evaluate_file(source: Source, asked: Asked, place: Place, *, as_json: bool) -> None:
    """Print the scores on the labels in the column `source.columns.id`. Raises CommandError, StartupError."""
    with source.open(blank=True) as texts, answering(asked, place) as answerer:
        if answerer.multi_label or not answerer.labels:
            raise CommandError(
                f"{answerer.card.name} gives {'several labels a text' if answerer.labels else 'no labels'}: "
                "--label-column is for models of one label a text"
            )
        scores, left_out = _scores(answerer, texts)
    found = {
        "model": answerer.card.name,
        "version": answerer.card.version,
        "file": texts.name,
        "left_out": left_out,
        "labels": list(scores.names),
        **scores.summary(),
    }
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    _print(found, len(answerer.labels), Console(soft_wrap=True))


def _scores(answerer: Answerer, texts: Texts) -> tuple[Scores, int]:
    """Of the rows with text and label, and how many lack one. Raises CommandError where no label is the model's."""
    numbers = {spelled(label): number for number, label in enumerate(answerer.labels)}
    labels, answers, answered, left_out = [], [], [], 0
    for chunk in chunks(iter(texts)):
        rows = [row for row in chunk if not any(map(is_blank, (*row.texts, row.id or "")))]
        left_out += len(chunk) - len(rows)
        if not rows:
            continue
        found, _ = answerer.scores(rows, texts.name)
        answers.append(found)
        answered += [label is not None for label in answerer.predicted(found)]
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


def _print(found: dict[str, Any], known: int, console: Console) -> None:
    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    left_out = (
        f", {found['left_out']} left out that lack a text or a label" if found["left_out"] else ""
    )
    say(f"{found['file']}: {found['rows']} rows{left_out}; {found['model']} {found['version']}")
    say(
        f"accuracy {found['accuracy']:.3f} ({found['low']:.3f} to {found['high']:.3f}), "
        f"macro-F1 {found['macro_f1']:.3f}, log loss {found['log_loss']:.3f}, "
        f"calibration error {found['calibration_error']:.3f}"
    )
    if found["answered"] < found["rows"]:
        said = f"it answers {found['answered']} of {found['rows']} rows"
        right = found["accuracy_of_answered"]
        say(said if right is None else f"{said}, {right:.3f} of them rightly")
    if other := found["labels"][known:]:
        say(f"labels that the model does not know, which count as wrong: {', '.join(other)}")
    grid = Table(*CLASS_COLUMNS, box=SIMPLE_HEAD)
    for cells in class_cells(found["classes"]):
        grid.add_row(*cells)
    console.print(grid)
    if len(found["labels"]) <= MOST_CLASSES:
        names = found["labels"]
        table = Table("label \\ answer", *names, box=SIMPLE_HEAD)
        for name, row in zip(names, found["confusion"], strict=True):
            table.add_row(name, *map(str, row))
        console.print(table)
        return
    for count, label, answer in confusions(found["labels"], found["confusion"])[:MOST_CONFUSIONS]:
        say(f"{count} rows of {label} are answered {answer}")
