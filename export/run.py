"""A run's folder (`training.checkpoint`) -> what a bundle is made from."""

import json
import shlex
from pathlib import Path
from typing import Any

import torch
from torch import nn

from export.bundle import Trained
from export.errors import ExportError
from runtime.card import ParserCard, ScoreCard, TrainingCard
from text.pieces import Lexicon, Pieces
from text.vocab import Vocab
from training import checkpoint, transformer
from training.config import RunConfig
from training.model import make_model


def read(run: Path) -> Trained:
    """The best weights of a finished run, with the scores that `heedful evaluate --run` left there.

    Raises ExportError where the run has not ended.
    """
    for name in (checkpoint.RECORD, checkpoint.BEST):
        _check(run, name)
    record: dict[str, Any] = json.loads((run / checkpoint.RECORD).read_text(encoding="utf-8"))
    config = RunConfig.model_validate(record["config"])
    vocab, words = _words(run, config)
    kind, labels = record["kind"], tuple(record["labels"])
    model = make_model(config, kind, len(labels), words)
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
            vectors=_vectors(config),
            seed=config.seed,
            epochs=record["epochs"],
            config=record["file"],
            command=record.get("command", shlex.join(["heedful", "train", record["file"]])),
            commit=record["commit"],
        ),
        licence=config.licence,
    )


def _check(run: Path, name: str) -> None:
    if not (run / name).is_file():
        raise ExportError(f"{run} holds no {name}: train first, or go on with --resume")


def _words(run: Path, config: RunConfig) -> tuple[Lexicon, torch.Tensor | nn.Module]:
    """The run's vocabulary, and a table or a transformer whose weights are still to be loaded."""
    if config.transformer:
        _check(run, checkpoint.TOKENIZER)
        module, _ = transformer.load(config.transformer)
        return Pieces.load(run / checkpoint.TOKENIZER), module
    _check(run, checkpoint.VOCAB)
    vocab = Vocab.load(run / checkpoint.VOCAB)
    return vocab, torch.zeros(len(vocab), config.words.dim)


def _vectors(config: RunConfig) -> str:
    """What the card says of where the word vectors come from."""
    if not config.transformer:
        return config.words.vectors
    return f"{config.transformer.name}, {'frozen' if config.transformer.trained == 'nothing' else 'fine-tuned'}"
