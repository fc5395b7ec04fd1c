"""A teacher's vectors of one's own texts -> a small encoder of the same vectors, as a bundle."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from heedful.cli import options
from heedful.cli.user_run import UserRun, run_key
from heedful.library.load import bundle_folder, load
from heedful.runtime.bundles.card import Card, DistilledCard
from heedful.runtime.cores import usable_cores
from heedful.text.arrays import Floats
from heedful.training import taught_vectors, teacher_vectors, teachers
from heedful.training.config import CACHE, Device
from heedful.training.errors import DataError
from heedful.training.optimise import require_device

TIMED = 512
"""Held-out texts, at most, that the speeds are measured on."""
WORDS = "ms-san-embed"
"""The bundle whose word vectors are the first ones where the teacher, a file of vectors, reads no words."""


def distill(
    teacher: str | Path,
    texts: Iterable[str],
    out: str | Path,
    *,
    effort: taught_vectors.Effort = "normal",
    runs: str | Path = "runs",
    seed: int = 1,
    threads: int | None = None,
    device: Device = "cpu",
    console: Console | None = None,
) -> Card:
    """Train a small encoder that gives the vectors of `teacher`, write its bundle `out`, and return its card.

    `teacher` is `minilm`, `mpnet`, the folder of a sentence encoder (transformers, sentence-transformers), its name on
    the hub, or a .npy file (N, D) with a vector for each of the N texts. Blank texts are left out. Raises DataError,
    DataMissing, ConfigError, ExportError, BundleError.
    """
    out, runs, teacher, console = (
        Path(out),
        Path(runs),
        str(teacher),
        console or Console(stderr=True),
    )
    options.require_free(out)
    require_device(device)
    torch.set_num_threads(threads or usable_cores())
    rows = list(texts)
    is_file = teacher.endswith(teacher_vectors.FILE)
    if is_file:
        rows = _keep(teacher, rows)
    learned, held = taught_vectors.divided([text for text in rows if text.strip()], seed)
    # A file has no vectors of new texts.
    new = [] if is_file else taught_vectors.mixed(learned, effort, seed)

    def progress(left: int) -> None:
        console.print(f"labelling: {left:,} texts are left")

    all_texts = [*held, *learned, *new]
    vectors = teacher_vectors.stored_vectors(teacher, all_texts, CACHE, device, progress)
    expected = vectors[: len(held)].astype(np.float32)
    task = taught_vectors.make_task(out.name, learned, new, held, expected, seed)
    configs = taught_vectors.make_configs(
        task.name,
        teacher,
        words=str(bundle_folder(WORDS)) if is_file else teacher,
        size=vectors.shape[1],
        texts=len(learned) + len(new),
        effort=effort,
        seed=seed,
        device=device,
    )
    key = run_key(out.name, teachers.identity(teacher), effort, str(seed), *all_texts)
    user_run = UserRun(task, out, runs, options.pipeline_of(out), console)
    run = runs / f"distill-{key}"
    for number, config in enumerate(configs, 1):
        console.print(f"training, phase {number} of {len(configs)}")
        if number > 1:
            config, run = (
                config.model_copy(update={"init_from": run}),
                runs / f"distill-{key}-{number}",
            )
        user_run.train(config, run)
    console.print("exporting")
    card = user_run.export(run)
    facts = _measured(out, teacher, held, expected, None if is_file else device)
    return user_run.describe(card, {"distilled": facts})


def _keep(file: str, texts: Sequence[str]) -> list[str]:
    """Put a file's vectors into the cache; the texts that have one. Raises DataError."""
    try:
        vectors = np.load(file, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise DataError(f"{file} is no array of vectors: {error}") from error
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise DataError(
            f"{file} has the shape {vectors.shape}, and there are {len(texts)} texts: give a row for each"
        )
    lengths = np.linalg.norm(vectors.astype(np.float32), axis=1)
    rows = np.flatnonzero(np.isfinite(lengths) & (lengths > 0))
    texts_with_vector = [texts[i] for i in rows.tolist()]
    teacher_vectors.keep(file, texts_with_vector, vectors[rows].astype(np.float32), CACHE)
    return texts_with_vector


def _measured(
    out: Path, teacher: str, held: Sequence[str], expected: Floats, device: Device | None
) -> DistilledCard:
    """What the bundle keeps of the teacher's vectors (M, D) of held-out texts, and the speed of both on one thread."""
    timed = held[:TIMED]
    with load(out, threads=1) as model:
        vectors = model.encode(held)
        seconds = _seconds(lambda: model.encode(timed))
    cosine, neighbours = taught_vectors.agreement(vectors, expected)
    speed, size = None, None
    if device is not None:
        loaded = teachers.load(teacher, device, half=True)
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        speed = len(timed) / _seconds(lambda: loaded.vectors(timed))
        torch.set_num_threads(before)
        size = sum(weights.numel() * 4 for weights in loaded.model.parameters())
    return DistilledCard(
        teacher=teacher,
        texts=len(held),
        cosine=cosine,
        neighbours=neighbours,
        texts_per_second=len(timed) / seconds,
        teacher_texts_per_second=speed,
        bytes=sum(file.stat().st_size for file in out.iterdir()),
        teacher_bytes=size,
    )


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
