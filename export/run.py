"""A run's folder (`training.checkpoint`) -> what a bundle is made from."""

import json
import shlex
from pathlib import Path
from typing import Any

import torch

from export.bundle import Trained
from export.errors import ExportError
from runtime.card import ParserCard, ScoreCard, TrainingCard
from text.vocab import Vocab
from training import checkpoint
from training.config import RunConfig
from training.model import make_model


def read(run: Path) -> Trained:
    """The best weights of a finished run, with the scores that `heedful evaluate --run` left there.

    Raises ExportError where the run has not ended.
    """
    for name in (checkpoint.RECORD, checkpoint.BEST, checkpoint.VOCAB):
        if not (run / name).is_file():
            raise ExportError(f"{run} holds no {name}: train first, or go on with --resume")
    record: dict[str, Any] = json.loads((run / checkpoint.RECORD).read_text(encoding="utf-8"))
    config = RunConfig.model_validate(record["config"])
    vocab = Vocab.load(run / checkpoint.VOCAB)
    kind, labels = record["kind"], tuple(record["labels"])
    table = torch.zeros(len(vocab), config.words.dim)
    model = make_model(config, kind, len(labels), table)
    model.load_state_dict(checkpoint.load(run / checkpoint.BEST))
    recorded = ScoreCard(split="dev", **{"metric": "accuracy", **record["dev"]})
    scores = {(recorded.dataset, "dev", recorded.metric): recorded}
    if (measured := run / checkpoint.SCORES).exists():  # through a bundle: it wins over training's
        for score in map(ScoreCard.model_validate, json.loads(measured.read_text("utf-8"))):
            scores[score.dataset, score.split, score.metric] = score
    return Trained(
        encoder=config.encoder.name,
        config=config.encoder_keywords(),
        model=model.sentence,
        head=None if kind == "embedding" else model.head,
        vocab=vocab,
        task=record["task"],
        kind=kind,
        labels=labels,
        max_tokens=config.max_tokens,
        alpha=config.alpha,
        parser=ParserCard.model_validate(record["parser"]),
        scores=tuple(scores.values()),
        training=TrainingCard(
            data=tuple(record["data"]),
            vectors=config.words.vectors,
            seed=config.seed,
            epochs=record["epochs"],
            config=record["file"],
            command=record.get("command", shlex.join(["heedful", "train", record["file"]])),
            commit=record["commit"],
        ),
        licence=config.licence,
    )
