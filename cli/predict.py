"""predict: the label and the score of each row of a file, next to the row's own columns."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from heedful.cli import options
from heedful.cli.answers import Answerer, ModelChoice, loaded_answerer
from heedful.cli.placement import Place, cluster_of
from heedful.cli.row_files import SUFFIXES, AnsweredRow, write_rows
from heedful.cli.row_progress import RowProgress
from heedful.cli.texts import Dialect, Source, Texts, chunks
from heedful.cli.vectors import check_free

PREDICTED, SCORE, SCORES = "predicted", "score", "scores"
"""The columns that are added to a row: its label, the label's probability (relatedness: a score from 1 to 5), and the
probability of each label, which a table leaves out."""


def command(
    file: options.TextsFile,
    out: Annotated[
        str,
        typer.Option(
            help="The rows with their answers: .csv, .tsv or .jsonl, each maybe with .gz, or .parquet; - is stdout."
        ),
    ],
    model: options.Name = None,
    labels: options.Labels = "",
    text_column: options.TextColumn = "text",
    premise_column: options.PremiseColumn = None,
    hypothesis_column: options.HypothesisColumn = None,
    format: options.TextsFormat = None,
    encoding: options.Encoding = "",
    delimiter: options.Delimiter = "",
    models: options.Models = options.MODELS,
    parser: options.ServedParser = None,
    device: options.RunsOn = "auto",
    ray: options.Ray = None,
    id_column: options.IdColumn = None,
    resume: options.Resume = False,
    actors: options.Actors = None,
    rows_per_file: options.RowsPerFile = None,
) -> None:
    """Label each row of a file, without a server: its columns stay, `predicted` and `score` are added.

    Example: heedful predict reviews.csv --model ms-san-sentiment --text-column review --out labelled.csv

    A row without a text gets no label; a text that is longer than the model reads is cut. A model of
    pairs reads --premise-column and --hypothesis-column. With --ray a Parquet file or folder, on a Ray
    cluster, into a folder, and --id-column is needed.
    """
    console = Console(stderr=True, soft_wrap=True)
    place = Place(models, parser, device)
    choice = ModelChoice.of(model, labels, premise_column, hypothesis_column)
    without_ray = {
        "--labels": labels,
        "--format": format,
        "--encoding": encoding,
        "--delimiter": delimiter,
    }
    with_ray = {"--id-column": id_column, "--resume": resume}
    if cluster := cluster_of(ray, actors, rows_per_file, without_ray, with_ray):
        from heedful.cli.ray_run import Job, run  # needs pyarrow

        names = choice.pair or (text_column,)
        job = Job(
            "nli" if choice.pair else "classify",
            file,
            out,
            names,
            id_column,
            model,
            {"truncate": True},
            place,
        )
        run(job, cluster, resume=resume, console=console)
        return
    target = Path(out)
    check_free(target, SUFFIXES)
    columns = choice.columns(place, text_column, all_columns=True)
    source = Source(file, format, columns, Dialect(encoding, delimiter))
    with (
        source.open(blank=True) as texts,
        loaded_answerer(choice, place) as answerer,
        RowProgress(target.name, texts.size, console) as progress,
    ):
        rows = _answered(answerer, texts, progress)
        write_rows(target, source.format, texts, rows, partial(_schema, answerer))


def _answered(
    answerer: Answerer, texts: Texts, progress: RowProgress
) -> Iterator[list[AnsweredRow]]:
    """Chunks of rows with their answers. Raises CommandError where the file has a column of an answer's name."""
    for chunk in chunks(iter(texts)):
        scores, cut = answerer.scores(chunk, texts.name)
        rows: list[AnsweredRow] = []
        for row, label, row_scores in zip(chunk, answerer.predicted(scores), scores, strict=True):
            if clash := {PREDICTED, SCORE, SCORES} & set(row.record):
                raise texts.wrong(
                    row.line, f"a column is named {min(clash)!r}, as one that is added: rename it"
                )
            answer: dict[str, Any] = {PREDICTED: label} if answerer.labels else {}
            answer[SCORE] = None if np.isnan(row_scores[0]) else round(float(row_scores.max()), 6)
            if answerer.labels and answer[SCORE] is not None:
                answer[SCORES] = dict(zip(answerer.labels, row_scores.tolist(), strict=True))
            rows.append((row.record, answer))
        yield rows
        blank = int(np.isnan(scores[:, 0]).sum())
        unusual = {"without a text": blank, "cut": int(cut.sum())}
        progress.advance(len(chunk), texts.bytes, unusual)


def _schema(answerer: Answerer) -> Any:
    import pyarrow

    score = (SCORE, pyarrow.float64())
    if not answerer.labels:
        return pyarrow.schema([score])
    label = pyarrow.string()
    if answerer.multi_label:
        label = pyarrow.list_(label)
    scores = pyarrow.struct([(name, pyarrow.float64()) for name in answerer.labels])
    return pyarrow.schema([(PREDICTED, label), score, (SCORES, scores)])
