"""An embedding's bundle and one's own pairs of texts -> a bundle that finds one from the other."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from heedful.cli.options import RUNS, pipeline_beside, require_free
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
from heedful.training.tuning import SHARE, distinct, divided, make_config, make_task, score

ROWS = 2_000
"""Pairs of each set that what was lost is measured on."""
FIRST = "first.npy"
"""The bundle's vectors of the pairs' texts, in the run's folder."""
TELLING = 50
"""Held-out pairs that a difference can be read from; of fewer, one weighs more than two points."""


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
    base = read_card(bundle)
    if base.kind != "embedding":
        raise ConfigError(f"{bundle} is no embedding: name another bundle")
    pairs = distinct(pairs)
    learned, held = divided(pairs, seed)
    texts = list(dict.fromkeys(text for one in pairs for text in one.texts))
    rows = (f"{one.texts} {one.label}" for one in pairs)
    run = runs / f"tune-{run_key(out.name, base.version, str(seed), *rows)}"
    run.mkdir(parents=True, exist_ok=True)
    first = run / FIRST
    before = _vectors(bundle, texts, device)
    np.save(first, np.array([before[text] for text in texts]))
    teacher_vectors.keep(str(first), texts, np.load(first), CACHE)
    task = make_task(out.name, learned, held, seed)
    changed = make_config(config, bundle, base.licence, task.name, str(first), seed)
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


def doubts(before: ScoreCard, after: ScoreCard, bundle: str) -> Iterator[str]:
    """What speaks against the new bundle, from its two scores on the pairs held out, and what to do."""
    if after.rows < TELLING:
        yield (
            f"{after.rows} held-out pairs are too few to tell whether it got better: one pair may decide. "
            f"Give {TELLING / SHARE:.0f} pairs or more, of which {TELLING} are then held out"
        )
    if after.value <= before.value:
        yield (
            f"it finds the held-out pairs no better than before: use {bundle} as it was, or tune it on more pairs "
            "(2,000 of one source are a good number)"
        )


def general(before: Path, after: Path, data: Path) -> Iterator[str]:
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
