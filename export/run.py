"""A run's folder (`training.checkpoint`) -> what a bundle is made from."""

import json
import shlex
from pathlib import Path

from heedful.export.bundle import Trained
from heedful.runtime.card import ParserCard, ScoreCard, TrainingCard
from heedful.training import checkpoint
from heedful.training.config import RunConfig
from heedful.training.restore import restore


def read(run: Path) -> Trained:
    """The best weights of a finished run, with the scores that `heedful evaluate --run` left there.

    Raises RunMissing where the run has not ended.
    """
    restored = restore(run)
    config, record, model = restored.config, restored.record, restored.model
    kind, labels = record["kind"], tuple(record["labels"])
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
        vocab=restored.lexicon,
        task=record["task"],
        kind=kind,
        labels=labels,
        max_tokens=config.max_tokens,
        alpha=config.alpha,
        parser=ParserCard.model_validate(record["parser"]),
        scores=tuple(scores.values()),
        training=TrainingCard(
            data=tuple(record["data"]),
            vectors=_vectors(config),
            seed=config.seed,
            epochs=record["epochs"],
            config=record["file"],
            command=record.get("command", shlex.join(["heedful", "train", record["file"]])),
            commit=record["commit"],
            teacher=config.teacher.run.as_posix() if config.teacher else "",
        ),
        licence=config.licence,
    )


def _vectors(config: RunConfig) -> str:
    """What the card says of where the word vectors come from."""
    if not config.transformer:
        return config.words.vectors
    return f"{config.transformer.name}, {'frozen' if config.transformer.finetune == 'none' else 'fine-tuned'}"
