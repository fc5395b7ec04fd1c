"""A finished run (`training.checkpoint`) -> a bundle, measured and complete, in one call."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from heedful.export.bundle import TrainedModel, make_bundle
from heedful.export.bundle_writer import check_replaceable, write
from heedful.export.dev_split import DevSplit, graph_vectors, read_texts
from heedful.export.errors import ExportError
from heedful.export.golden import golden
from heedful.export.measured import MIN_COSINE, measured
from heedful.export.open_words import open_vocabulary
from heedful.export.typical import LEAST, typical
from heedful.export.weight_storage import Storage
from heedful.models.composed_words import ComposedWords
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import (
    ENCODER,
    ENCODER_INT8,
    GOLDEN,
    TYPICAL,
    Card,
    ParserCard,
    ScoreCard,
    TrainingCard,
    TypicalCard,
)
from heedful.text.batch import Sentence
from heedful.text.parse import Parser
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training import checkpoint, tasks
from heedful.training.config import RunConfig
from heedful.training.data import evenly
from heedful.training.errors import DataMissing
from heedful.training.restore import Run, restore
from heedful.training.tasks.base import Task

TYPICAL_SENTENCES = 4000
"""Training sentences of the index at most, evenly spaced."""
LEAST_COSINE = 0.98
"""The `least_cosine` of `export_smallest`."""
NO_INDEX = "cannot say how like its training texts a text is (`typical` is null)"
THRESHOLD = 0.01
"""Share of training sentences below which an input counts as untypical."""


@dataclass(frozen=True, slots=True)
class Choices:
    """How a run is exported."""

    storage: Storage = "normal"
    int8: bool = True
    words: int | None = None  # how many of the most frequent words to keep; None: all
    composed: int | None = None  # subword features for a closed vocabulary; None: as trained
    least_cosine: float = MIN_COSINE  # of an embedding's vector to the trained model's, at least


def export_run(
    run: Path,
    out: Path,
    choices: Choices,
    *,
    data: Path,
    parser: Parser,
    say: Callable[[str], None],
    task: Task | None = None,
) -> Card:
    """Write the bundle `out`, whole or not at all, and return its card.

    Weights are rounded once, from the trained ones. On the dev split the graphs are scored and compared with the
    trained model, and probabilities are calibrated. The bundle gets golden vectors and an index of training sentences.
    `say` prints what is left out. `task` is for a run of none of `training.tasks`. Raises RunMissing, RunDamaged,
    ExportError, BundleError; DataMissing where the choices need data that are missing.
    """
    check_replaceable(out)
    trained = read(run, choices.words)
    if trained.parser.fingerprint != parser.fingerprint:
        raise ExportError(
            f"{run} was trained with the parser {trained.parser.name}: name it with --parser"
        )
    task = task or tasks.get(trained.task)
    try:
        examples = task.dev.read(data)
        task.require("dev", examples)
    except DataMissing as reason:
        if choices.int8:
            raise
        say(f"the bundle is not measured, and {NO_INDEX}: {reason}")
        examples = []
    if choices.composed is not None:
        trained = open_vocabulary(trained, choices.composed)
    bundle = make_bundle(trained, out.name, choices.storage, int8=choices.int8)
    files = dict(bundle.files)
    fields = bundle.card.fields()
    if examples:
        dev = DevSplit.read(task, examples, parser, trained)
        bundle = measured(bundle, trained, dev, choices.least_cosine)
        fields = bundle.card.fields()
        texts = evenly(task.texts(data), TYPICAL_SENTENCES)
        sample = [sentence for sentence in read_texts(texts, parser, trained) if len(sentence)]
        if len(sample) >= LEAST:
            files[TYPICAL], fields["typical"] = _typical(bundle, sample, task)
        else:
            say(f"the bundle {NO_INDEX}: that takes {LEAST} training texts, here are {len(sample)}")
    files[GOLDEN] = golden(bundle, parser.parse).to_bytes()
    return write(out, fields, files)


def export_smallest(run: Path, out: Path, **keywords: Any) -> Card:
    """`export_run` with small storage and int8, or without where vectors then move too far; raises the same errors.

    Vectors may move farther than in `export_run`: a user's long texts with rare words move them more than the sentences
    that the shipped bundles are compared on, and the caller measures the bundle.
    """
    try:
        return export_run(run, out, Choices("small", least_cosine=LEAST_COSINE), **keywords)
    except ExportError as error:
        keywords["say"](f"{error}; exported without int8")
        return export_run(run, out, Choices(int8=False, least_cosine=LEAST_COSINE), **keywords)


def _typical(bundle: Bundle, sample: Sequence[Sentence], task: Task) -> tuple[bytes, TypicalCard]:
    """The index of training sentences, and its entry on the card."""
    served = ENCODER_INT8 if ENCODER_INT8 in bundle.files else ENCODER
    index = typical(graph_vectors(bundle, served, sample)[:, : bundle.card.dimension])
    facts = TypicalCard(
        dataset=" + ".join(dict.fromkeys(source.name for source in task.train)),
        sentences=len(sample) - len(sample) // 2,
        centroids=len(index.centroids),
        threshold=THRESHOLD,
    )
    return index.to_bytes(), facts


def read(run: Path, words: int | None = None) -> TrainedModel:
    """The best weights of a finished run, and the scores that `python -m tools evaluate --run` recorded.

    With `words` only so many of the most frequent words are kept. Raises RunMissing if the run has not finished,
    RunDamaged, and ExportError if it has not learned to compose the other words.
    """
    restored = restore(run)
    lexicon = restored.lexicon if words is None else _shorten(restored, words)
    config, record, model = restored.config, restored.record, restored.model
    kind, labels = record["kind"], tuple(record["labels"])
    dev = ScoreCard(split="dev", **{"metric": "accuracy", **record["dev"]})
    scores = {(dev.dataset, "dev", dev.metric): dev}
    # A score measured through a bundle replaces the one of the training.
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
    """Cut the model's word table, in place; returns the vocabulary of the words that are left."""
    embedding = run.model.sentence.embedding
    if not isinstance(run.lexicon, Vocab) or not isinstance(embedding, ComposedWords):
        raise ExportError(
            "--words needs a run that composes unlisted words: `subword_rows` in [words]"
        )
    vocab = Vocab(run.lexicon.words[len(SPECIAL) :][:words], run.lexicon.composed)
    embedding.table = nn.Embedding.from_pretrained(embedding.table.weight[: len(vocab)])
    return vocab


def _vectors(config: RunConfig) -> str:
    """Where the word vectors come from, for the card."""
    if not config.transformer:
        return config.words.vectors
    return (
        f"{config.transformer.name}, {'frozen' if 'transformer' in config.freeze else 'fine-tuned'}"
    )
