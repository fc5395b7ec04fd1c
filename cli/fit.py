"""fit: a bundle from labelled texts, measured on a tenth of them that training never saw."""

import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table
from sklearn.metrics import confusion_matrix, f1_score

from heedful.cli.local_model import open_folder
from heedful.cli.options import PARSER, Parser, Threads
from heedful.cli.rescore import card_fields
from heedful.export import run as runs
from heedful.export.bundle import export_bundle
from heedful.models.registry import ENCODERS
from heedful.runtime.bundle import write
from heedful.runtime.card import Card
from heedful.text.atomic import write_json
from heedful.training import checkpoint, fit, table, vectors
from heedful.training.config import Paths
from heedful.training.data import labels
from heedful.training.errors import ConfigError
from heedful.training.evaluate import Score, predict
from heedful.training.loop import train
from heedful.training.metrics import Numbers, accuracy
from heedful.training.tasks.base import Task


def command(
    file: Annotated[Path, typer.Argument(help="Labelled texts: a .csv, .tsv or .jsonl file.")],
    label_column: Annotated[str, typer.Option(help="Column of the labels.")],
    out: Annotated[Path, typer.Option(help="The bundle: bundles/<encoder>-<task>.")],
    text_column: Annotated[str | None, typer.Option(help="Column of the texts.")] = None,
    pair_columns: Annotated[
        str | None, typer.Option(help="For pairs: the two columns, as premise,hypothesis.")
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="An encoder; `heedful models` lists them.")
    ] = "ms-san",
    vectors: Annotated[
        str, typer.Option(help="Word vectors: a bundle's folder, or a GloVe text file.")
    ] = "bundles/ms-san-nli",
    parser: Parser = PARSER,
    seed: Annotated[int, typer.Option(help="Seed of the split and of the training.")] = 1,
    threads: Threads = 1,
) -> None:
    """Train a classifier on your own texts, measure it and write its bundle."""
    if (text_column is None) == (pair_columns is None):
        raise typer.BadParameter("give --text-column or --pair-columns, one of them")
    columns = [text_column] if text_column else (pair_columns or "").split(",")
    if pair_columns and len(columns) != 2:
        raise typer.BadParameter("--pair-columns takes two names with a comma between")
    torch.set_num_threads(threads)
    card = fit_file(
        file,
        columns,
        label_column,
        encoder=encoder,
        word_vectors=vectors,
        out=out,
        run=Path("runs/fit") / out.name,
        parser=parser,
        seed=seed,
        command=shlex.join(["heedful", *sys.argv[1:]]),
        console=Console(),
    )
    parser_flag = "" if (out.parent / "parser").is_dir() else f" --parser {parser}"
    typer.echo(
        f"{out}: version {card.version}; "
        f"serve it with `heedful serve --models {out.parent}{parser_flag}`"
    )


def fit_file(
    file: Path,
    columns: Sequence[str],
    label_column: str,
    *,
    encoder: str,
    word_vectors: str,
    out: Path,
    run: Path,
    parser: str,
    seed: int,
    command: str,
    console: Console,
) -> Card:
    """Check `file`, train on it in the folder `run`, which is emptied, and write the bundle `out`.

    Raises DataError, ConfigError, DataMissing, ExportError, BundleError.
    """
    if not re.fullmatch(r"[a-z0-9-]+", out.name):
        raise ConfigError(f"--out: {out.name!r} names no bundle: use a-z, 0-9 and -")
    if encoder not in ENCODERS:
        raise ConfigError(f"--encoder: {encoder!r}: known are {', '.join(sorted(ENCODERS))}")
    rows = table.read(file, columns, label_column)
    words, size = vectors.head_of_vocabulary(word_vectors, fit.COMMON_WORDS)
    task = fit.make_task(rows, file, words=words, seed=seed)
    config = fit.make_config(task, encoder=encoder, word_vectors=word_vectors, size=size, seed=seed)
    console.print(f"{file.name}: {len(rows)} rows, {len(task.labels)} labels")

    if run.exists():
        shutil.rmtree(run)
    paths = Paths(run, file.parent, parser, Path(".cache/parses"), file)
    record = train(config, paths, resume=False, console=console, task=task)
    write_json(run / checkpoint.RECORD, {**record, "command": command})
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / out.name
        card = export_bundle(runs.read(run), made)
        examples = task.test.read(file.parent)
        with open_folder(made, parser) as model:
            answers = predict(examples, task, model)
        gold = labels(examples)
        score = Score(task.test.name, "test", "accuracy", accuracy(answers, gold), len(gold))
        write_json(run / checkpoint.SCORES, [score.as_dict()])
        fields = card_fields(card)
        fields["scores"] = [*fields["scores"], score.as_dict()]
        card = write(out, fields, {name: made / name for name in card.files})
    _show(task, answers, gold, console)
    return card


def _show(task: Task, answers: Numbers, gold: Numbers, console: Console) -> None:
    """Print accuracy, macro-F1 and the confusion matrix of the test rows."""
    macro = f1_score(gold, answers, average="macro", zero_division=0)
    console.print(
        f"test ({len(gold)} rows): accuracy {accuracy(answers, gold):.4f}, macro-F1 {macro:.4f}"
    )
    grid = Table("label \\ answer", *task.labels, title="Confusion matrix")
    counts = confusion_matrix(gold, answers, labels=range(len(task.labels)))
    for label, row in zip(task.labels, counts, strict=True):
        grid.add_row(label, *map(str, row))
    console.print(grid)
