"""evaluate: how well a classifier does on a user's own labelled file."""

from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli.answers import Asked
from heedful.cli.evaluate_file import evaluate_file
from heedful.cli.placement import Place
from heedful.cli.texts import Dialect, Source


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
