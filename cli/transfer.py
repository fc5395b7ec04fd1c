"""transfer: a model's frozen embeddings, compared with all-MiniLM-L6-v2."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

import heedful
from heedful.cli.local_model import open_model
from heedful.cli.options import DATA, URL, Data, FolderParser, Results, Threads, Url
from heedful.files.atomic import write_json
from heedful.runtime.bundles.card import CARD
from heedful.text.arrays import Floats
from heedful.training import minilm, transfer
from heedful.training.tasks import subj
from heedful.training.transfer import Embed

BATCH = 64


def command(
    model: Annotated[
        str, typer.Argument(help="Name of a served bundle, a bundle's folder, or minilm.")
    ],
    url: Url = URL,
    parser: FolderParser = None,
    results: Results = Path("results"),
    data: Data = DATA,
    threads: Threads = 1,
) -> None:
    """Measure frozen embeddings: logistic regression on five tasks, cosines on two, speed compared with MiniLM."""
    torch.set_num_threads(threads)
    found = record(model, results, url=url, parser=parser, data=data, threads=threads)
    for name, value in (found["accuracy"] | found["similarity"]).items():
        typer.echo(f"{name}: {value:.4f}")
    typer.echo(
        f"{found['sentences_per_second']:.0f} sentences a second, MiniLM "
        f"{found['minilm_sentences_per_second']:.0f}"
    )


def record(
    model: str, results: Path, *, url: str, parser: str | None, data: Path, threads: int
) -> dict[str, Any]:
    """Measure `model`, a served bundle, a bundle's folder or `minilm`, and write `results/transfer/<model>.json`.

    Raises DataMissing, TrainingError, StartupError, BundleError, and ModuleNotFoundError if MiniLM is not installed.
    """
    peer = _minilm()
    with ExitStack() as stack:
        name, embed = model, peer
        if (Path(model) / CARD).is_file():
            loaded = stack.enter_context(heedful.load(model, parser=parser, threads=threads))
            name, embed = loaded.card.name, partial(loaded.encode, batch_size=BATCH)
        elif model != minilm.NAME:
            served = stack.enter_context(open_model(model, url=url, parser=parser))
            embed = _in_groups(served.embed)
        texts = [one.texts[0] for one in subj.read(data)]
        speed, beside = transfer.speeds((embed, peer), texts)
        found = {
            "model": name,
            "dimension": embed(texts[:1]).shape[1],
            "accuracy": transfer.accuracies(embed, data),
            "similarity": transfer.similarities(embed, data),
            "sentences_per_second": speed,
            "minilm_sentences_per_second": beside,
        }
    file = results / "transfer" / f"{found['model']}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, found)
    return found


def _minilm() -> Embed:
    loaded = minilm.load()
    return lambda texts: minilm.mean_vectors(loaded, texts)


def _in_groups(embed: Embed) -> Embed:
    def of_groups(texts: Sequence[str]) -> Floats:
        return np.concatenate(
            [embed(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        )

    return of_groups
