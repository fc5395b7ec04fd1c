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
PREDICTORS: dict[str, Answers] = {}
"""`encoder.name` of a model that is no sentence encoder -> its probabilities (N, classes) of texts or pairs."""


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

    A teacher reads the beginning of a text that is too long for it; an encoder over a transformer reads none of such
    a text. A text that is not read has the same probability in every class. Raises RunMissing,
    and ConfigError where the teacher has other classes.
    """
    bundle = is_bundle(folder)
    record = {} if bundle else read_record(folder)
    labels = bundle_labels(folder) if bundle else record["labels"]
    if len(labels) != classes:
        raise ConfigError(f"teacher.run: {folder} has {len(labels)} classes, not {classes}")
    texts = [example.texts for example in examples]
    is_encoder = bundle or record["config"]["encoder"]["name"] != CROSS_ENCODER
    if not is_encoder and CROSS_ENCODER not in PREDICTORS:
        raise ConfigError(
            f"teacher.run: {folder} is a cross-encoder's run, which only a checkout reads"
        )
    weights = (folder / ENCODER if bundle else folder / checkpoint.BEST).read_bytes()
    key = chain([weights], ("\0".join(pair).encode() + b"\0\0" for pair in texts))

    def answer() -> Arrays:
        if not is_encoder:
            return {"answers": PREDICTORS[CROSS_ENCODER](folder, texts, device)}
        run = restore_bundle(folder) if bundle else restore(folder)
        run.model.to(device)
        return {"answers": _answer(run, examples, classes, pipeline=pipeline, cache=cache)}

    prefix = "taught-" if is_encoder else "fine-tuned-"
    answers: Floats = cached(cache, key, answer, prefix=prefix)["answers"]
    return answers


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
    read = [i for i, item in enumerate(examples) if all(text in rows.index for text in item.texts)]
    readable = Examples.of([examples[i] for i in read], rows, lambda _: np.array(read))
    answers = np.full((len(examples), classes), 1 / classes, np.float32)
    half = config.optimiser.precision == "bfloat16"
    batches = readable.batches(BATCH, None)
    with (
        torch.inference_mode(),
        torch.autocast(run.model.alpha.device.type, torch.bfloat16, enabled=half),
    ):
        for sides, places in track(batches, "teaching", -(-len(readable) // BATCH), transient=True):
            answers[places] = run.model(sides).float().softmax(-1).cpu().numpy()
    return answers
