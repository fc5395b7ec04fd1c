"""Read a finished run (`training.checkpoint`) for export."""

import shlex
from pathlib import Path

from torch import nn

from heedful.export.bundle import TrainedModel
from heedful.export.errors import ExportError
from heedful.models.composed_words import ComposedWords
from heedful.runtime.bundles.card import ParserCard, ScoreCard, TrainingCard
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training import checkpoint
from heedful.training.config import RunConfig
from heedful.training.restore import Run, restore


def read(run: Path, words: int | None = None) -> TrainedModel:
    """The best weights of a finished run, and the scores that `heedful evaluate --run` recorded.

    With `words` only so many listed words are kept, the most frequent. Raises RunMissing if the run has not
    finished, RunDamaged, and ExportError if it has not learned to compose the others.
    """
    restored = restore(run)
    lexicon = restored.lexicon if words is None else _shorten(restored, words)
    config, record, model = restored.config, restored.record, restored.model
    kind, labels = record["kind"], tuple(record["labels"])
    recorded = ScoreCard(split="dev", **{"metric": "accuracy", **record["dev"]})
    scores = {(recorded.dataset, "dev", recorded.metric): recorded}
    # What was measured through a bundle replaces training's score.
    for score in map(ScoreCard.model_validate, checkpoint.scores(run)):
        scores[score.dataset, score.split, score.metric] = score
    return TrainedModel(
        encoder=config.encoder.name,
        config=config.encoder_keywords(),
        model=model.sentence,
        head=None if kind == "embedding" else model.head,
        vocab=lexicon,
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
            teacher=", ".join(map(Path.as_posix, config.teacher.runs)) if config.teacher else "",
            start=config.init_from.as_posix() if config.init_from else "",
            settings=config.model_dump(mode="json"),
        ),
        licence=config.licence,
        temperature=record.get("temperature"),
    )


def _shorten(run: Run, words: int) -> Vocab:
    """Cut the model's word table; the vocabulary of what is left."""
    listed = run.model.sentence.embedding
    if not isinstance(run.lexicon, Vocab) or not isinstance(listed, ComposedWords):
        raise ExportError(
            "--words needs a run that composes unlisted words: `subword_rows` in [words]"
        )
    kept = Vocab(run.lexicon.words[len(SPECIAL) :][:words], run.lexicon.composed)
    listed.table = nn.Embedding.from_pretrained(listed.table.weight[: len(kept)])
    return kept


def _vectors(config: RunConfig) -> str:
    """Where the word vectors come from, for the card."""
    if not config.transformer:
        return config.words.vectors
    return (
        f"{config.transformer.name}, {'frozen' if 'transformer' in config.freeze else 'fine-tuned'}"
    )
