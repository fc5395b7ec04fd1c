"""A run's folder: what training leaves and what export reads.

runs/<name>/
  vocab.txt, or tokenizer.json of a model of pieces
  best.pt       weights of the best dev score so far (the averaged ones, where averaging is on)
  last.pt       everything a resumed run needs
  log.jsonl     a line an epoch
  run.json      the configuration and what a model card says of the training; written at its end
  scores.json   what `heedful evaluate --run` measured through the bundle
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from heedful.training.files import write_whole

VOCAB, TOKENIZER = "vocab.txt", "tokenizer.json"
BEST, LAST, LOG = "best.pt", "last.pt", "log.jsonl"
RECORD, SCORES = "run.json", "scores.json"


def save(path: Path, state: dict[str, Any]) -> None:
    write_whole(path, lambda part: torch.save(state, part))


def load(path: Path) -> dict[str, Any]:
    """Tensors and plain values only: nothing in a checkpoint is executed."""
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return state


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come."""

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    lowest_loss: float = math.inf
