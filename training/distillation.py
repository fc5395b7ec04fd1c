"""Distillation of a classifier (Hinton, Vinyals and Dean 2015): a finished run's probabilities as targets."""

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from rich.progress import track

from heedful.models.registry import reads_trees
from heedful.text.arrays import Floats
from heedful.text.parse import Parser
from heedful.training import checkpoint
from heedful.training.config import CROSS_ENCODER, Device
from heedful.training.data import Examples
from heedful.training.errors import ConfigError
from heedful.training.parses import Arrays, cached, parse
from heedful.training.restore import Run, read_record, restore
from heedful.training.restore_bundle import ENCODER, bundle_labels, is_bundle, restore_bundle
from heedful.training.tasks.base import Example

BATCH = 256
Answers = Callable[[Path, Sequence[tuple[str, ...]], Device], Floats]
OTHERS: dict[str, Answers] = {}
"""A run's probabilities (N, classes) of texts or pairs, by `encoder.name`, of models that are no sentence encoders."""


def probabilities(
    folder: Path,
    examples: Sequence[Example],
    *,
    classes: int,
    pipeline: str | None,
    cache: Path,
    device: Device = "cpu",
) -> Floats:
    """(N, classes) the probabilities of a run's or a bundle's model, cached so that an interrupted run can continue.

    A teacher reads the beginning of a text that is longer than it can read, but for an encoder over a transformer,
    which reads none of it. A text of which it reads nothing is equally likely in every class. Raises RunMissing,
    and ConfigError where the teacher has other classes.
    """
    bundle = is_bundle(folder)
    record = {} if bundle else read_record(folder)
    labels = bundle_labels(folder) if bundle else record["labels"]
    if len(labels) != classes:
        raise ConfigError(f"teacher.run: {folder} has {len(labels)} classes, not {classes}")
    texts = [example.texts for example in examples]
    small = bundle or record["config"]["encoder"]["name"] != CROSS_ENCODER
    if not small and CROSS_ENCODER not in OTHERS:
        raise ConfigError(f"teacher.run: {folder} is a cross-encoder's, which a checkout reads")
    weights = (folder / ENCODER if bundle else folder / checkpoint.BEST).read_bytes()
    key = chain([weights], ("\0".join(one).encode() + b"\0\0" for one in texts))

    def answer() -> Arrays:
        if not small:
            return {"answers": OTHERS[CROSS_ENCODER](folder, texts, device)}
        run = restore_bundle(folder) if bundle else restore(folder)
        run.model.to(device)
        return {"answers": _answer(run, examples, classes, pipeline=pipeline, cache=cache)}

    kept: Floats = cached(cache, key, answer, prefix="taught-" if small else "fine-tuned-")[
        "answers"
    ]
    return kept


def _answer(
    run: Run, examples: Sequence[Example], classes: int, *, pipeline: str | None, cache: Path
) -> Floats:
    config = run.config
    parsed = parse(
        [text for example in examples for text in example.texts],
        pipeline=pipeline,
        fingerprint=Parser.load(pipeline).fingerprint,
        max_tokens=config.max_tokens,
        tree=reads_trees(config.encoder.name, config.encoder_keywords()),
        cache_dir=cache,
    )
    rows = parsed.rows(run.lexicon)
    places = [i for i, one in enumerate(examples) if all(text in rows.index for text in one.texts)]
    readable = Examples.of([examples[i] for i in places], rows, lambda _: np.array(places))
    answers = np.full((len(examples), classes), 1 / classes, np.float32)
    half = config.optimiser.precision == "bfloat16"
    batches = readable.batches(BATCH, None)
    with (
        torch.inference_mode(),
        torch.autocast(run.model.alpha.device.type, torch.bfloat16, enabled=half),
    ):
        for sides, group in track(batches, "teaching", -(-len(readable) // BATCH), transient=True):
            answers[group] = run.model(sides).float().softmax(-1).cpu().numpy()
    return answers
