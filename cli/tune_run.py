"""An embedding's bundle and a user's pairs of texts -> a bundle whose vectors find a text's partner."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from heedful.cli.options import RUNS, pipeline_of, require_free
from heedful.cli.user_run import UserRun, run_key
from heedful.library.load import load
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import Card, ScoreCard
from heedful.runtime.cores import usable_cores
from heedful.text.arrays import Floats
from heedful.training import similarity, teacher_vectors
from heedful.training.config import CACHE, Device
from heedful.training.errors import ConfigError, DataMissing
from heedful.training.optimise import require_device
from heedful.training.restore_bundle import restore_bundle
from heedful.training.tasks.base import UNLABELLED, Example
from heedful.training.tuning import SHARE, distinct, make_config, make_task, score, split

ROWS = 2_000
"""Pairs of STS-B and of SICK on which both bundles are compared."""
TEACHER = "first.npy"
"""The file of the bundle's own vectors of the pairs' texts, in the run's folder: the new vectors stay near them."""
ENOUGH = 50
"""Least held-out pairs for a comparison of scores; with fewer, one pair changes the score by over two points."""


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

    The last two scores of its card are on the held-out pairs, before and after. Raises ConfigError,
    RunMissing for a bundle that cannot be trained again, ExportError, BundleError.
    """
    console = Console(stderr=True)
    require_free(out, bundle)
    require_device(device)
    torch.set_num_threads(threads or usable_cores())
    config = restore_bundle(bundle).config
    base = read_card(bundle)
    if base.kind != "embedding":
        raise ConfigError(f"{bundle} is no embedding: name another bundle")
    pairs = distinct(pairs)
    train, held = split(pairs, seed)
    texts = list(dict.fromkeys(text for pair in pairs for text in pair.texts))
    rows = (f"{pair.texts} {pair.label}" for pair in pairs)
    run = runs / f"tune-{run_key(out.name, base.version, str(seed), *rows)}"
    run.mkdir(parents=True, exist_ok=True)
    teacher = run / TEACHER
    before = _vectors(bundle, texts, device)
    np.save(teacher, np.array([before[text] for text in texts]))
    teacher_vectors.keep(str(teacher), texts, np.load(teacher), CACHE)
    task = make_task(out.name, train, held, seed)
    new_config = make_config(config, bundle, base.licence, task.name, str(teacher), seed)
    user_run = UserRun(task, out, runs, pipeline_of(out), console)
    user_run.train(new_config.model_copy(update={"device": device}), run)
    card = user_run.export(run)
    metric = "ndcg@10" if held[0].label == UNLABELLED else "spearman"
    vectors_of_both = (before, _vectors(out, texts, device))
    scores = [
        ScoreCard(
            dataset=out.name,
            split=f"held out, {when}",
            metric=metric,
            value=score(vectors, pairs, held),
            rows=len(held),
        )
        for when, vectors in zip(("before", "after"), vectors_of_both, strict=True)
    ]
    return user_run.describe(card, {"scores": [*card.scores, *scores]})


def _vectors(bundle: Path, texts: Sequence[str], device: Device) -> dict[str, Floats]:
    """Vectors (D,) of length 1, by text."""
    with load(bundle, device=device) as model:
        return dict(zip(texts, model.encode(texts), strict=True))


def doubts(before: ScoreCard, after: ScoreCard, bundle: str) -> Iterator[str]:
    """Reasons against the new bundle, from both scores on the pairs held out, each with a remedy."""
    if after.rows < ENOUGH:
        yield f"{after.rows} held-out pairs are too few to tell: give {ENOUGH / SHARE:.0f} pairs or more"
    if after.value <= before.value:
        yield f"it finds the held-out pairs no better than before: use {bundle} as it was, or give more pairs"


def compare_similarity(before: Path, after: Path, data: Path) -> Iterator[str]:
    """Lines that compare the scores of both bundles on pairs of STS-B and SICK."""
    try:
        with load(before) as old, load(after) as new:
            figures = [
                list(similarity.similarities(model.encode, data, "dev", ROWS))
                for model in (old, new)
            ]
    except DataMissing as error:
        yield f"its similarity on STS-B and SICK is not measured: {error}"
        return
    for first, second in zip(*figures, strict=True):
        yield f"{first.dataset}: {first.metric} {first.value:.4f} before, {second.value:.4f} after"
