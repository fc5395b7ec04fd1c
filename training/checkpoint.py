"""A run's folder, which training writes and export reads.

runs/<name>/
  vocab.txt, or tokenizer.json for word pieces
  best.safetensors  weights with the best dev score so far (the averaged ones, where averaging is on), without the
                    frozen ones of a transformer, which are read from its own folder
  last.pt           everything a resumed run needs
  log.jsonl         one line per epoch
  run.json          the configuration and the model card's facts about the training; written at the end
  scores.json       scores of the bundle from `python -m tools evaluate --run`
"""

import json
import math
import pickle
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import safetensors.torch
import torch
from pydantic import BaseModel
from safetensors import SafetensorError
from torch import Tensor

from heedful.files.atomic import remove_parts, write_file
from heedful.training.errors import ConfigError, RunDamaged

VOCAB, TOKENIZER = "vocab.txt", "tokenizer.json"
BEST, LAST, LOG = "best.safetensors", "last.pt", "log.jsonl"
RECORD, SCORES = "run.json", "scores.json"


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a state of tensors and plain values. Raises OSError where the disk is full."""

    def write(part: Path) -> None:
        with part.open("wb") as out:
            try:
                torch.save(state, out)
            except RuntimeError as error:
                if isinstance(error.__context__, OSError):  # torch's own error hides it
                    raise error.__context__ from None
                raise

    write_file(path, write)


def save_best(run: Path, weights: Mapping[str, Tensor]) -> None:
    """Write the run's best weights. Raises OSError where the disk is full."""
    tensors = {name: weight.detach().cpu().contiguous() for name, weight in weights.items()}
    content = safetensors.torch.save(tensors)
    write_file(run / BEST, lambda part: part.write_bytes(content))


def load(path: Path) -> dict[str, Any]:
    """Load tensors and plain values only: nothing in a checkpoint is executed. Raises RunDamaged."""
    # torch raises a different error for each way in which a file is no archive.
    if not zipfile.is_zipfile(path):
        raise _damaged(path, "it is no whole checkpoint")
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise _damaged(path, str(error).partition("\n")[0]) from error
    return state


def record(run: Path) -> dict[str, Any]:
    """The content of `run.json`. Raises RunDamaged."""
    file = run / RECORD
    try:
        content: dict[str, Any] = json.loads(file.read_bytes())
    except ValueError as error:
        raise _damaged(file, f"not JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("config"), dict):
        raise _damaged(file, "it has no config")
    return content


def scores(run: Path) -> list[dict[str, Any]]:
    """The content of `scores.json`; empty where there is none. Raises RunDamaged."""
    file = run / SCORES
    try:
        content: list[dict[str, Any]] = json.loads(file.read_bytes()) if file.exists() else []
    except ValueError as error:
        raise RunDamaged(f"{file} is damaged: {error}; remove it and evaluate again") from error
    return content


def weights_mismatch(run: Path, error: RuntimeError) -> RunDamaged:
    """The error for best weights that are not those of the model in the other files."""
    first = " ".join(str(error).split())[:200]
    return RunDamaged(
        f"{run}: {BEST} is not of the run in {RECORD}: copy the whole folder: {first}"
    )


def _damaged(file: Path, reason: str) -> RunDamaged:
    return RunDamaged(f"{file} is damaged: {reason}; remove it and train again")


def best(run: Path) -> dict[str, Tensor]:
    """The best weights of a finished run. Raises RunDamaged."""
    try:
        return safetensors.torch.load_file(run / BEST)
    except SafetensorError as error:
        raise _damaged(run / BEST, str(error)) from error


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come."""

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    lowest_loss: float = math.inf
    step: int = 0
    """Steps of the next epoch that are done."""
    loss: float = 0.0
    """Sum of the losses of the examples in these steps."""

    def after_epoch(self, loss: float, score: float) -> "Progress":
        epoch = self.epoch + 1
        return Progress(
            epoch=epoch,
            best_epoch=epoch if score > self.best_score else self.best_epoch,
            best_score=max(score, self.best_score),
            lowest_loss=min(loss, self.lowest_loss),
        )


class Stateful(Protocol):
    """A part of a checkpoint."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


def save_last(
    run: Path,
    parts: Mapping[str, Stateful],
    progress: Progress,
    config: BaseModel,
    parser: str = "",
) -> None:
    """Write the state of a run to resume. `parser` is the fingerprint of the parser that read the texts."""
    state: dict[str, Any] = {name: part.state_dict() for name, part in parts.items()}
    state |= {"progress": asdict(progress), "config": config.model_dump(mode="json")}
    state |= {"parser": parser, "generators": _generators()}
    save(run / LAST, state)


def _generators() -> list[Tensor]:
    """The states of torch's random generators: of the CPU, then of each GPU."""
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return [torch.get_rng_state(), *gpus]


def restore_generators(state: Mapping[str, Any]) -> None:
    """Continue the random numbers of `state`, so that dropout is that of an uninterrupted epoch."""
    first, *others = state["generators"]
    torch.set_rng_state(first)
    if others:
        torch.cuda.set_rng_state_all(others)


def last_state(
    run: Path, config: BaseModel, validate: Callable[[Any, Path], BaseModel], *, resume: bool
) -> dict[str, Any] | None:
    """The state that `save_last` wrote in the folder of an interrupted run; None in a new folder, which is created.

    A finished run may lack `last.pt`: its record is returned then. Raises ConfigError where the folder holds
    another run, or this one without `resume`, or is a file; RunDamaged.
    """
    try:
        run.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ConfigError(f"--run: {run} is a file or lies in one: name another folder") from error
    last = run / LAST
    state = None
    if last.exists() or (run / RECORD).exists():
        if not resume:
            raise ConfigError(
                f"{run} already holds a run: --resume continues it, --run names another folder"
            )
        state = load(last) if last.exists() else record(run)
        if "config" not in state:
            raise _damaged(last, "it has no config")
        # A field that was added after the run started has its default there.
        if validate(state["config"], last) != config:
            raise ConfigError(f"{run} was started with another configuration: name another --run")
        scored = state.get("progress", {"best_epoch": 1})["best_epoch"]
        if scored and not (run / BEST).exists():
            raise RunDamaged(f"{run} holds no {BEST}: train the run again, in another folder")
    for name in (VOCAB, TOKENIZER, BEST, LAST, RECORD):
        remove_parts(run / name)
    return state


def restore(state: Mapping[str, Any], parts: Mapping[str, Stateful]) -> Progress:
    """Load the state of `save_last` into `parts`."""
    for name, part in parts.items():
        part.load_state_dict(state[name])
    return Progress(**state["progress"])


def log(run: Path, line: Mapping[str, float]) -> None:
    """Append the figures of an epoch to the run's log."""
    with (run / LOG).open("a") as file:
        file.write(json.dumps(line) + "\n")
