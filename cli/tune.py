"""tune: an embedding's bundle and one's own pairs of texts -> a bundle that finds one from the other."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console

from heedful.cli.options import (
    DATA,
    RUNS,
    AllThreads,
    Data,
    Delimiter,
    Encoding,
    Runs,
    TextsFormat,
    pipeline_beside,
    require_free,
)
from heedful.cli.texts import Columns, Dialect, Source, Texts
from heedful.cli.user_run import CACHE, UserRun, run_key
from heedful.library.load import bundle_folder, load
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import Card, ScoreCard
from heedful.runtime.cores import usable_cores
from heedful.text.arrays import Floats
from heedful.training import similarity, teacher_vectors
from heedful.training.config import Device
from heedful.training.errors import ConfigError, DataMissing
from heedful.training.optimise import require_device
from heedful.training.restore_bundle import restore_bundle
from heedful.training.tasks.base import UNLABELLED, Example
from heedful.training.tuning import distinct, divided, make_config, make_task, score

ROWS = 2_000
"""Pairs of each set that what was lost is measured on."""
FIRST = "first.npy"
"""The bundle's vectors of the pairs' texts, in the run's folder."""


def command(
    bundle: Annotated[str, typer.Argument(help="An embedding's bundle: its name or its folder.")],
    pairs: Annotated[
        str,
        typer.Argument(
            help="Pairs: .jsonl, .csv, .tsv, each maybe with .gz, or .parquet; - is stdin."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The new bundle, such as bundles/mine.")],
    columns: Annotated[
        str, typer.Option(help="The two columns of texts that belong together.")
    ] = "a,b",
    negative_column: Annotated[
        str | None, typer.Option(help="Column of a text that is no partner of the first.")
    ] = None,
    score_column: Annotated[
        str | None, typer.Option(help="Column of a score, or of 0 and 1.")
    ] = None,
    format: TextsFormat = None,
    encoding: Encoding = "",
    delimiter: Delimiter = "",
    runs: Runs = RUNS,
    data: Data = DATA,
    seed: Annotated[int, typer.Option(help="Of order and of what is held out.")] = 1,
    threads: AllThreads = None,
    device: Annotated[Device, typer.Option(help="Where it is trained.")] = "cpu",
) -> None:
    """Train an embedding on pairs of your texts, such as questions and answers, and write its bundle.

    A tenth of the pairs is held out: the command prints how well it finds them before and after, and what it has lost
    on STS-B and SICK where these are in --data.

    Example: heedful tune ms-san-embed faq.csv --columns question,answer --out bundles/faq
    """
    names = tuple(columns.split(","))
    if len(names) != 2:
        raise typer.BadParameter("--columns takes two names with a comma between")
    if negative_column and score_column:
        raise typer.BadParameter("give --negative-column or --score-column, one of them")
    columns_read = Columns(names[0], second=names[1], whole=True, pair_options="--columns")
    source = Source(pairs, format, columns_read, Dialect(encoding, delimiter))
    folder = bundle_folder(bundle)
    card = tune(
        folder,
        list(read_pairs(source, negative_column, score_column)),
        out,
        runs=runs,
        seed=seed,
        threads=threads,
        device=device,
    )
    before, after = card.scores[-2:]
    typer.echo(
        f"{out}: version {card.version}; {after.metric} of {after.rows} pairs held out: {before.value:.4f} before, "
        f"{after.value:.4f} after"
    )
    for line in _general(folder, out, data):
        typer.echo(line)


def read_pairs(source: Source, negative: str | None, score: str | None) -> Iterator[Example]:
    """The pairs of a file; rows with a blank text are left out. Raises CommandError naming the line."""
    with source.open(blank=True) as rows:
        for row in rows:
            cells = [row.record.get(name) for name in filter(None, (negative, score))]
            if None in cells:
                raise rows.wrong(
                    row.line, f"no {negative or score!r}: the row has {', '.join(row.record)}"
                )
            texts = (*row.texts, *([str(cells[0])] if negative else []))
            if any(not text or text.isspace() for text in texts):
                continue
            yield Example(texts, _number(cells[0], row.line, rows) if score else UNLABELLED)


def _number(cell: object, line: int, rows: Texts) -> float:
    try:
        number = float(str(cell))
    except ValueError as error:
        raise rows.wrong(line, f"the score is {cell!r}: give a number") from error
    if not math.isfinite(number) or number == UNLABELLED:
        raise rows.wrong(line, f"the score is {cell}: give a number from 0")
    return number


def tune(
    bundle: Path,
    pairs: Sequence[Example],
    out: Path,
    *,
    runs: Path = RUNS,
    seed: int = 1,
    threads: int | None = None,
    device: Device = "cpu",
) -> Card:
    """Train the embedding in `bundle` on pairs, as `read_pairs` gives them, and write the bundle `out`.

    The last two scores of its card are those of the pairs held out, before and after. Raises ConfigError,
    RunMissing for a bundle that is not trained again, ExportError, BundleError.
    """
    console = Console(stderr=True)
    require_free(out, bundle)
    require_device(device)
    torch.set_num_threads(threads or usable_cores())
    config = restore_bundle(bundle).config
    if read_card(bundle).kind != "embedding":
        raise ConfigError(f"{bundle} is no embedding: name another bundle")
    pairs = distinct(pairs)
    learned, held = divided(pairs, seed)
    texts = list(dict.fromkeys(text for one in pairs for text in one.texts))
    rows = (f"{one.texts} {one.label}" for one in pairs)
    run = runs / f"tune-{run_key(read_card(bundle).version, str(seed), *rows)}"
    run.mkdir(parents=True, exist_ok=True)
    first = run / FIRST
    before = _vectors(bundle, texts, device)
    np.save(first, np.array([before[text] for text in texts]))
    teacher_vectors.keep(str(first), texts, np.load(first), CACHE)
    task = make_task(out.name, learned, held, seed)
    changed = make_config(config, bundle, task.name, str(first), seed)
    own = UserRun(task, out, runs, pipeline_beside(out), console)
    own.train(changed.model_copy(update={"device": device}), run)
    card = own.export(run)
    metric = "ndcg@10" if held[0].label == UNLABELLED else "spearman"
    both = (before, _vectors(out, texts, device))
    scores = [
        ScoreCard(
            dataset=out.name,
            split=f"held out, {when}",
            metric=metric,
            value=score(vectors, pairs, held),
            rows=len(held),
        )
        for when, vectors in zip(("before", "after"), both, strict=True)
    ]
    return own.describe(card, {"scores": [*card.scores, *scores]})


def _vectors(bundle: Path, texts: Sequence[str], device: Device) -> dict[str, Floats]:
    """Of length 1, by text."""
    with load(bundle, device=device) as model:
        return dict(zip(texts, model.encode(texts), strict=True))


def _general(before: Path, after: Path, data: Path) -> Iterator[str]:
    """How similar both bundles find the pairs of STS-B and SICK."""
    try:
        with load(before) as old, load(after) as new:
            figures = [
                list(similarity.similarities(one.encode, data, "dev", ROWS)) for one in (old, new)
            ]
    except DataMissing as error:
        yield f"what it lost elsewhere is not measured: {error}"
        return
    for first, second in zip(*figures, strict=True):
        yield f"{first.dataset}: {first.metric} {first.value:.4f} before, {second.value:.4f} after"
