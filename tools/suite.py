"""suite: a bundle, or a baseline, on every development set of its kind."""

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from heedful.cli.options import DATA, Data
from heedful.files.atomic import write_json
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import CARD
from heedful.text.arrays import Floats
from heedful.text.kinds import NLI_LABELS
from heedful.training import tasks, teacher_vectors, teachers
from heedful.training.errors import ConfigError
from heedful.training.metrics import Numbers
from heedful.training.similarity import Embed, Figure, Split
from heedful.training.tasks.base import Example
from tools.local_model import LocalModel, open_folder
from tools.options import FolderParser
from tools.scoring import measure
from tools.suites import embedding as embedding_suite
from tools.suites import static_table
from tools.suites.figures import MORE, NLI, POLARITY, WORDS, embedded, labelled, polarised, spelled
from tools.suites.word_means import word_means

CACHE = Path(".cache/suite")
"""Cache of the baselines' vectors."""
BM25 = "bm25"
BASELINES = (teachers.MINILM, static_table.NAME, BM25)
"""Baselines of an embedding; each is scored like a bundle."""


def command(
    model: Annotated[
        str, typer.Argument(help="A bundle's folder, or minilm, static-table or bm25.")
    ],
    split: Annotated[Split, typer.Option(help="Which split.")] = "dev",
    rows: Annotated[int | None, typer.Option(min=100, help="At most this many of a set.")] = None,
    results: Annotated[Path | None, typer.Option(help="Record the scores in this folder.")] = None,
    parser: FolderParser = None,
    data: Data = DATA,
) -> None:
    """Score a bundle's folder, or a baseline, on every development set of its kind."""
    for line in record(model, results, split=split, rows=rows, data=data, parser=parser):
        typer.echo(line)


def record(
    model: str,
    results: Path | None,
    *,
    split: Split,
    rows: int | None,
    data: Path,
    parser: str | None,
) -> Iterator[str]:
    """The figures as lines of text, while they are measured; at the end `results/suite/<model>.json` is written.

    Without `results`, or with `rows`, which takes a part of each set, nothing is written. Raises
    ConfigError for a model that is no bundle's folder, DataMissing.
    """
    if model not in BASELINES and not (Path(model) / CARD).is_file():
        raise ConfigError(f"{model} is no bundle's folder: name one, such as bundles/ms-san-nli")
    with nullcontext() if model in BASELINES else open_folder(Path(model), parser) as local:
        figures = []
        for score in _figures(model, local, split=split, rows=rows, data=data):
            figures.append(score)
            yield _line(score)
        if results is None or rows is not None:
            return
        name = model if local is None else local.card.name
        version = "" if local is None else local.card.version
        suffix = "" if split == "dev" else f"-{split}"
        file = results / "suite" / f"{name}{suffix}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        fields = {"model": name, "version": version, "split": split}
        write_json(file, fields | {"figures": [asdict(score) for score in figures]})
        yield from _compared(name, file.parent, suffix)


def _compared(name: str, folder: Path, suffix: str) -> Iterator[str]:
    """The mean of each kind of work, of the model and of the baselines that have a record; nothing for a classifier."""
    kinds = (*embedding_suite.KINDS, "mean")
    for model in (name, *(baseline for baseline in BASELINES if baseline != name)):
        file = folder / f"{model}{suffix}.json"
        if not file.is_file():
            continue
        figures = [Figure(**score) for score in json.loads(file.read_bytes())["figures"]]
        means = embedding_suite.means(figures)
        if model == name and not means:
            return
        yield f"{model}: " + ", ".join(
            f"{kind} {means[kind]:.3f}" for kind in kinds if kind in means
        )


def _line(score: Figure) -> str:
    rows = "" if score.rows is None else f" ({score.rows} rows)"
    return f"{score.dataset}: {score.metric} {score.value:.4f}{rows}"


def _figures(
    model: str, local: LocalModel | None, *, split: Split, rows: int | None, data: Path
) -> Iterator[Figure]:
    if local is None:
        return _baseline(model, data, split, rows)
    card = local.card
    if card.kind == "embedding":
        words = word_means(read(Path(model)))
        of_words = embedded(words, data, split, rows)
        renamed = (replace(score, dataset=WORDS + score.dataset) for score in of_words)
        return chain(_embedding(local.embed, data, split, rows), renamed)
    task = tasks.get(card.task)
    if card.kind == "relatedness":
        scores = measure(task, split, data, local)
        return (Figure(each.dataset, each.metric, each.value, each.rows) for each in scores)
    order = NLI_LABELS if card.kind == "nli" else task.labels
    sets = {task.name: (task.dev if split == "dev" else task.test).read}
    sets |= MORE.get((task.name, split), {})
    if card.kind == "nli":
        sets = dict(NLI[split])

    def logits(examples: Sequence[Example]) -> Numbers:
        return local.ordered_logits(examples, order)

    return chain(
        labelled(sets, data, logits, temperature=card.temperature, rows=rows),
        spelled(sets, data, logits) if card.kind == "nli" and split == "dev" else (),
        polarised(POLARITY[split], data, logits, order, rows),
    )


def _baseline(name: str, data: Path, split: Split, rows: int | None) -> Iterator[Figure]:
    if name == BM25:
        return embedding_suite.bm25_figures(data)
    embed = static_table.static_table(CACHE) if name == static_table.NAME else _minilm
    return _embedding(embed, data, split, rows)


def _embedding(embed: Embed, data: Path, split: Split, rows: int | None) -> Iterator[Figure]:
    """The figures of `embedded` and, on dev and without `rows`, of the six kinds of work."""
    yield from embedded(embed, data, split, rows)
    if rows is None and split == "dev":
        yield from embedding_suite.figures(embed, data)
        if embed(["a text"]).shape[-1] == teachers.MINILM_SIZE:
            yield from embedding_suite.aligned_figures(embed, _minilm, data)


def _minilm(texts: Sequence[str]) -> Floats:
    """(N, 384) the vectors of all-MiniLM-L6-v2, of length 1."""
    return teacher_vectors.stored_vectors(teachers.MINILM, texts, CACHE, "cpu").astype(np.float32)
