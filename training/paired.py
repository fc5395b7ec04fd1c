"""The objective of pairs of texts that belong together: in-batch negatives, or scores, near to the first vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from heedful.text.arrays import Floats
from heedful.text.batch import Batch
from heedful.training import teacher_vectors
from heedful.training.config import DistillationConfig, PairsConfig
from heedful.training.model import TrainingModel
from heedful.training.tasks.base import UNLABELLED, Example

SAME = 0.9999
"""Cosine of first vectors from which on two texts are one: such a text is no negative."""
SCALE = 20.0
"""Of differences of cosines, where pairs have scores (CoSENT, Su 2022)."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two texts, or three with one that does not belong to them (a hard negative); the answer is a pair's cosine."""

    pairs: PairsConfig
    weights: DistillationConfig
    cache: Path
    device: str

    def targets(self, examples: Sequence[Example]) -> Floats:
        """(N, 1 + S D): the score or UNLABELLED, and the first vectors of the S texts."""
        texts = [text for one in examples for text in one.texts]
        found = teacher_vectors.targets(self.weights.teachers, texts, self.cache, self.device)
        scores = np.array([[one.label] for one in examples], np.float32)
        first = found.astype(np.float32).reshape(len(examples), -1)
        return np.concatenate([scores, first], axis=1)

    def loss(self, model: TrainingModel, sides: list[Batch], targets: Tensor) -> Tensor:
        scores = targets[:, 0]
        first = targets[:, 1:].unflatten(1, (len(sides), -1))  # (B, S, D)
        vectors = torch.stack([model.encode(side).float() for side in sides], dim=1)
        moved = 1 - functional.cosine_similarity(vectors, first, dim=-1).mean()
        unit = functional.normalize(vectors, dim=-1)
        if (scores == UNLABELLED).any():
            known = functional.normalize(first, dim=-1)
            own = in_batch_loss(unit, known, self.pairs.temperature)
        else:
            own = ordered_loss((unit[:, 0] * unit[:, 1]).sum(-1), scores)
        return own + self.weights.regression * moved

    def answer(self, model: TrainingModel, sides: list[Batch]) -> Tensor:
        first, second = map(model.encode, sides[:2])
        return functional.cosine_similarity(first, second)


def in_batch_loss(unit: Tensor, first: Tensor, temperature: float) -> Tensor:
    """Unit vectors (B, S, D) of pairs, now and first -> the mean cross entropy of each text's partner, from both sides.

    The other candidates are the partners of the batch's other texts (Henderson et al. 2017) and, of a text of the first
    side, the third texts of all pairs.
    """
    questions, answers = unit[:, 0], unit[:, 1:].transpose(0, 1).flatten(0, 1)
    same = _same(first[:, 1:].transpose(0, 1).flatten(0, 1), first[:, 1])
    forward = _cross_entropy(questions @ answers.T / temperature, same.T)
    back = _cross_entropy(unit[:, 1] @ questions.T / temperature, _same(first[:, 0], first[:, 0]))
    return (forward + back) / 2


def _same(candidates: Tensor, partners: Tensor) -> Tensor:
    """(C, D), (B, D) -> (C, B): whether a candidate is a partner's text."""
    return candidates @ partners.T > SAME


def _cross_entropy(logits: Tensor, same: Tensor) -> Tensor:
    """(B, C) with each row's own partner in the column of its number; what is the `same` (B, C) text is left out."""
    places = torch.arange(len(logits), device=logits.device)
    others = same.clone()
    others[places, places] = False
    return functional.cross_entropy(logits.masked_fill(others, -torch.inf), places)


def ordered_loss(cosines: Tensor, scores: Tensor) -> Tensor:
    """(B,), (B,): low where a pair with a higher score has a higher cosine (CoSENT, Su 2022)."""
    apart = SCALE * (cosines[None, :] - cosines[:, None])[scores[:, None] > scores[None, :]]
    return torch.cat([apart, apart.new_zeros(1)]).logsumexp(0)
