"""What a run trains: a model, its examples and its objective."""

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
from heedful.training.start import begin_with
from heedful.training.tasks import get as get_task
from heedful.training.tasks.base import Example, Task


@dataclass(frozen=True, slots=True)
class Setup:
    model: Trainable
    objective: Objective
    train: Batches
    dev: dict[str, Batches]
    """By task, the run's own first."""
    learned: list[dict[str, Any]]
    """For the card: the sets that the weights come from, those of `init_from` too."""
    parser: dict[str, str]
    """Name and fingerprint of the parser that read the texts; empty for a cross-encoder."""
    reads: str
    """How many words or pieces it knows."""


def set_up(config: RunConfig, task: Task, paths: Paths, state: Mapping[str, Any] | None) -> Setup:
    """Read the examples, ask the teacher, make the model. `state` is the checkpoint of a run that is resumed.

    Raises DataMissing, DataError, ParserError, RunMissing; ConfigError where a resumed run read other words or another
    parser, where the task has nothing that the model could answer, or one example would have batch norm.
    """
    parts = subsample([(one, one.read(paths.data)) for one in task.train], config.train_rows)
    examples = [example for _, found in parts for example in found]
    objective = make_objective(
        task.kind, config, classes=len(task.labels), pipeline=paths.parser, cache=paths.cache
    )
    devs = {one.name: one.dev.read(paths.data) for one in (task, *_extra(config, task))}
    for split, found in (("train", examples), ("dev", devs[task.name])):
        task.require(split, found)
    learned = [
        {"name": one.name, "rows": len(found), "licence": one.licence, "note": one.note}
        for one, found in parts
    ]
    data = RunData(config, task, paths, objective, examples, devs, learned)
    if config.encoder.name != CROSS_ENCODER:
        return data.encoder(state)
    if CROSS_ENCODER not in OTHERS:
        raise ConfigError("encoder.name: cross-encoders are trained in a checkout")
    return OTHERS[CROSS_ENCODER](data)


def _extra(config: RunConfig, task: Task) -> list[Task]:
    found = [get_task(name) for name in config.extra_dev_tasks]
    for one in found:
        if (one.kind, one.labels) != (task.kind, task.labels):
            raise ConfigError(f"extra_dev_tasks: {one.name} has other labels than {task.name}")
    return found


@dataclass(frozen=True, slots=True)
class RunData:
    """What was read for a run."""

    config: RunConfig
    task: Task
    paths: Paths
    objective: Objective
    examples: Sequence[Example]
    devs: Mapping[str, Sequence[Example]]
    learned: list[dict[str, Any]]

    def encoder(self, state: Mapping[str, Any] | None) -> Setup:
        config, task, paths = self.config, self.task, self.paths
        learned = self.learned
        inputs = prepare(config, task, self.objective, self.examples, self.devs, paths)
        if state and state.get("parser", inputs.parser.fingerprint) != inputs.parser.fingerprint:
            raise ConfigError(
                f"{paths.run} was started with another parser than {paths.parser}: name that one with --parser"
            )
        lexicon_file = paths.run / (
            checkpoint.TOKENIZER if config.transformer else checkpoint.VOCAB
        )
        _keep_lexicon(lexicon_file, inputs.lexicon, resumed=state is not None)
        model = make_model(config, task.kind, len(task.labels), inputs.words)
        if model.mixed and min(config.optimiser.batch, len(inputs.train)) == 1:
            raise ConfigError(
                f"{paths.config}: the head of {config.encoder.name} has batch norm, which cannot train on one example "
                "at a time: set optimiser.batch to 2 or more, and train on more than one row"
            )
        start_context(model.sentence.encoder, inputs.words, inputs.train.rows.ids)
        if config.init_from:
            earlier = begin_with(config, model, task, lexicon_file)
            learned = [*learned, *(one for one in earlier if one not in learned)]
        else:
            embedding = model.sentence.embedding
            composed.start(embedding, inputs.lexicon, seed=config.seed, device=config.device)
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


OTHERS: dict[str, Callable[[RunData], Setup]] = {}
"""What makes the models that are no sentence encoders, by `encoder.name`; `tools.cross_encoder` adds its own."""


def _keep_lexicon(file: Path, lexicon: Lexicon, *, resumed: bool) -> None:
    """Write the run's words or pieces. Raises ConfigError where a resumed run had others."""

    def write(part: Path) -> None:
        lexicon.save(part)
        if resumed and file.exists() and file.read_bytes() != part.read_bytes():
            raise ConfigError(
                f"{file} lists other words than the texts and vectors have now: resume with the same "
                "--data, or name another --run"
            )

    write_file(file, write)
