"""A configuration -> what a run trains: a model, its examples and its objective."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.files.atomic import write_file
from heedful.text.pieces import Lexicon
from heedful.training import checkpoint, composed
from heedful.training.config import CROSS_ENCODER, Paths, RunConfig
from heedful.training.data import Batches, subsample
from heedful.training.errors import ConfigError
from heedful.training.model import Trainable, make_model
from heedful.training.objectives import Objective, make_objective
from heedful.training.prepare import prepare, start_context
from heedful.training.start import load_initial_weights
from heedful.training.tasks import get as get_task
from heedful.training.tasks.base import Example, Task


@dataclass(frozen=True, slots=True)
class Setup:
    """A run that is ready to train."""

    model: Trainable
    objective: Objective
    train: Batches
    dev: dict[str, Batches]
    """By task, first the run's."""
    learned: list[dict[str, Any]]
    """For the card: the data sets that the weights learned from, those of `init_from` included."""
    parser: dict[str, str]
    """Name and fingerprint of the parser that read the texts; empty for a cross-encoder."""
    reads: str
    """The number of words or pieces of the vocabulary, for the log."""


def set_up(config: RunConfig, task: Task, paths: Paths, state: Mapping[str, Any] | None) -> Setup:
    """Read the examples, compute the teacher's targets, build the model. `state` is the checkpoint of a resumed run.

    Raises DataMissing, DataError, ParserError, RunMissing; ConfigError where a resumed run read other words or another
    parser, where a split has no example, or batch norm would get one example at a time.
    """
    sources = [(source, source.read(paths.data)) for source in task.train]
    parts = subsample(sources, config.train_rows)
    train = [example for _, examples in parts for example in examples]
    objective = make_objective(
        task.kind, config, classes=len(task.labels), pipeline=paths.parser, cache=paths.cache
    )
    devs = {item.name: item.dev.read(paths.data) for item in (task, *_extra_tasks(config, task))}
    for split, examples in (("train", train), ("dev", devs[task.name])):
        task.require(split, examples)
    learned = [
        {"name": source.name, "rows": len(examples), "licence": source.licence, "note": source.note}
        for source, examples in parts
    ]
    data = RunData(config, task, paths, objective, train, devs, learned)
    if config.encoder.name != CROSS_ENCODER:
        return data.set_up_encoder(state)
    if CROSS_ENCODER not in SETUPS:
        raise ConfigError("encoder.name: cross-encoders need a checkout of the repository")
    return SETUPS[CROSS_ENCODER](data)


def _extra_tasks(config: RunConfig, task: Task) -> list[Task]:
    """The tasks of `extra_dev_tasks`. Raises ConfigError where they have other labels."""
    tasks = [get_task(name) for name in config.extra_dev_tasks]
    for extra in tasks:
        if (extra.kind, extra.labels) != (task.kind, task.labels):
            raise ConfigError(f"extra_dev_tasks: {extra.name} has other labels than {task.name}")
    return tasks


@dataclass(frozen=True, slots=True)
class RunData:
    """The data of a run, before its model is built."""

    config: RunConfig
    task: Task
    paths: Paths
    objective: Objective
    examples: Sequence[Example]
    devs: Mapping[str, Sequence[Example]]
    learned: list[dict[str, Any]]

    def set_up_encoder(self, state: Mapping[str, Any] | None) -> Setup:
        """The setup of a sentence encoder: `set_up` has the arguments and errors."""
        config, task, paths = self.config, self.task, self.paths
        learned = self.learned
        inputs = prepare(config, task, self.objective, self.examples, self.devs, paths)
        if state and state.get("parser", inputs.parser.fingerprint) != inputs.parser.fingerprint:
            raise ConfigError(
                f"{paths.run} was started with another parser than {paths.parser}: use that one, or another folder"
            )
        lexicon_name = checkpoint.TOKENIZER if config.transformer else checkpoint.VOCAB
        lexicon_file = paths.run / lexicon_name
        _save_lexicon(lexicon_file, inputs.lexicon, resumed=state is not None)
        model = make_model(config, task.kind, len(task.labels), inputs.words)
        if model.mixed and min(config.optimiser.batch, len(inputs.train)) == 1:
            raise ConfigError(
                f"{paths.config}: the head of {config.encoder.name} has batch norm, which cannot train on one example "
                "at a time: set optimiser.batch to 2 or more, and train on more than one row"
            )
        start_context(model.sentence.encoder, inputs.words, inputs.train.rows.ids)
        if config.init_from:
            earlier = load_initial_weights(config, model, task, lexicon_file)
            learned = [*learned, *(data for data in earlier if data not in learned)]
        else:
            embedding = model.sentence.embedding
            composed.fit_features(embedding, inputs.lexicon, seed=config.seed, device=config.device)
        if "words" in config.freeze:
            model.sentence.embedding.requires_grad_(False)
        model.to(config.device)
        dropout = config.words.subword_dropout
        train = replace(inputs.train, subword_dropout=dropout, mixed=model.mixed)
        return Setup(
            model=model,
            objective=self.objective,
            train=train,
            dev=dict(inputs.dev),
            learned=learned,
            parser={"name": inputs.parser.name, "fingerprint": inputs.parser.fingerprint},
            reads=f"{len(inputs.lexicon)} {'pieces' if config.transformer else 'words'}",
        )


SETUPS: dict[str, Callable[[RunData], Setup]] = {}
"""`encoder.name` of a model that is no sentence encoder -> its setup; `tools.cross_encoder` adds its own."""


def _save_lexicon(file: Path, lexicon: Lexicon, *, resumed: bool) -> None:
    """Write the run's words or pieces. Raises ConfigError where those of a resumed run differ."""

    def write(part: Path) -> None:
        lexicon.save(part)
        if resumed and file.exists() and file.read_bytes() != part.read_bytes():
            raise ConfigError(
                f"{file} lists other words than the texts and vectors have now: resume with the same "
                "--data, or name another --run"
            )

    write_file(file, write)
