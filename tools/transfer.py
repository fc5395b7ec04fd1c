"""transfer: a bundle's frozen embeddings, compared with all-MiniLM-L6-v2."""

import statistics
import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

import heedful
from heedful.cli.options import DATA, Data, Threads
from heedful.files.atomic import write_json
from heedful.training import tasks, teachers
from heedful.training.data import labels
from heedful.training.metrics import pearson, spearman
from heedful.training.similarity import Embed, pair_cosines
from heedful.training.source_commit import source_commit
from heedful.training.tasks import stsb
from tools.options import FolderParser, Results
from tools.suites.transfer import accuracies
from tools.tasks.senteval import SUBJ

BATCH = 64
ROUNDS, ROUND_SIZE, WARM_UP = 5, 256, 2048
"""For the speed: rounds, in which the models take turns, texts a round, and texts before them that do not count."""


def command(
    model: Annotated[str, typer.Argument(help="A bundle's folder, or minilm.")],
    parser: FolderParser = None,
    results: Results = Path("results"),
    data: Data = DATA,
    threads: Threads = 1,
) -> None:
    """Measure frozen embeddings: logistic regression on five tasks, cosines on two, speed compared with MiniLM."""
    torch.set_num_threads(threads)
    measured = record(model, results, parser=parser, data=data, threads=threads)
    for name, value in (measured["accuracy"] | measured["similarity"]).items():
        typer.echo(f"{name}: {value:.4f}")
    typer.echo(
        f"{measured['sentences_per_second']:.0f} sentences a second, MiniLM "
        f"{measured['minilm_sentences_per_second']:.0f}"
    )


def record(
    model: str, results: Path, *, parser: str | None, data: Path, threads: int
) -> dict[str, Any]:
    """Measure a bundle's folder or `minilm`; write `results/transfer/<name>.json` with the bundle's version.

    Raises DataMissing, StartupError, BundleError, and ModuleNotFoundError if MiniLM is not installed.
    """
    peer = teachers.load(teachers.MINILM).vectors
    name, version, embed = model, None, peer
    is_peer = model == teachers.MINILM
    with nullcontext() if is_peer else heedful.load(model, parser=parser, threads=threads) as local:
        if local:
            name, version = local.card.name, local.card.version
            embed = partial(local.encode, batch_size=BATCH)
        texts = [example.texts[0] for example in SUBJ.read(data)]
        speed, peer_speed = speeds((embed, peer), texts)
        measured = {
            "model": name,
            "version": version,
            "commit": source_commit(),
            "dimension": embed(texts[:1]).shape[1],
            "accuracy": accuracies(embed, data),
            "similarity": similarities(embed, data),
            "sentences_per_second": speed,
            "minilm_sentences_per_second": peer_speed,
        }
    file = results / "transfer" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, measured)
    return measured


def similarities(embed: Embed, data: Path) -> dict[str, float]:
    """Correlation of the cosines of pairs with their gold scores. Raises DataMissing."""
    similar, related = stsb.DEV.read(data), tasks.get("sick-relatedness").test.read(data)
    return {
        "stsb dev spearman": spearman(pair_cosines(embed, similar), labels(similar)),
        "sick test pearson": pearson(pair_cosines(embed, related), labels(related)),
    }


def speeds(models: Sequence[Embed], texts: Sequence[str]) -> list[float]:
    """Sentences per second of each model: the median over rounds, each on other texts.

    The last WARM_UP texts are read first and not counted: a new parser knows no word yet.
    """
    rates: list[list[float]] = [[] for _ in models]
    for embed in models:
        embed(texts[-WARM_UP:])
    for number in range(ROUNDS):
        group = texts[number * ROUND_SIZE : (number + 1) * ROUND_SIZE]
        for embed, model_rates in zip(models, rates, strict=True):
            started = time.perf_counter()
            embed(group)
            model_rates.append(len(group) / (time.perf_counter() - started))
    return [statistics.median(model_rates) for model_rates in rates]
