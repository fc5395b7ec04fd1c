"""The objective of pairs of texts: in-batch negatives or scores, while vectors stay near to the initial ones."""

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
"""Cosine of initial vectors from which two texts count as the same text, which is no negative."""
SCALE = 20.0
"""Factor of differences of cosines, where pairs have scores (CoSENT, Su 2022)."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two texts, or three with one that does not belong to them (a hard negative); the answer is a pair's cosine."""

    pairs: PairsConfig
    weights: DistillationConfig
    cache: Path
    device: str

    def targets(self, examples: Sequence[Example]) -> Floats:
        """(N, 1 + S D): the score or UNLABELLED, and the initial vectors of the S texts."""
        texts = [text for example in examples for text in example.texts]
        vectors = teacher_vectors.targets(self.weights.teachers, texts, self.cache, self.device)
        scores = np.array([[example.label] for example in examples], np.float32)
        initial = vectors.astype(np.float32).reshape(len(examples), -1)
        return np.concatenate([scores, initial], axis=1)

    def loss(self, model: TrainingModel, sides: list[Batch], targets: Tensor) -> Tensor:
        scores = targets[:, 0]
        initial = targets[:, 1:].unflatten(1, (len(sides), -1))  # (B, S, D)
        vectors = torch.stack([model.encode(side).float() for side in sides], dim=1)
        distance = 1 - functional.cosine_similarity(vectors, initial, dim=-1).mean()
        unit = functional.normalize(vectors, dim=-1)
        if (scores == UNLABELLED).any():
            initial = functional.normalize(initial, dim=-1)
            loss = in_batch_loss(unit, initial, self.pairs.temperature)
        else:
            loss = ordered_loss((unit[:, 0] * unit[:, 1]).sum(-1), scores)
        return loss + self.weights.regression * distance

    def answer(self, model: TrainingModel, sides: list[Batch]) -> Tensor:
        first, second = map(model.encode, sides[:2])
        return functional.cosine_similarity(first, second)


def in_batch_loss(unit: Tensor, initial: Tensor, temperature: float) -> Tensor:
    """Unit vectors (B, S, D) of pairs, now and initially -> the mean cross entropy of each text's partner, both ways.

    The other candidates are the partners of the batch's other texts (Henderson et al. 2017) and, of a text of the first
    side, the third texts of all pairs.
    """
    questions, answers = unit[:, 0], unit[:, 1:].transpose(0, 1).flatten(0, 1)
    same = _same(initial[:, 1:].transpose(0, 1).flatten(0, 1), initial[:, 1])
    forward = _cross_entropy(questions @ answers.T / temperature, same.T)
    same = _same(initial[:, 0], initial[:, 0])
    back = _cross_entropy(unit[:, 1] @ questions.T / temperature, same)
    return (forward + back) / 2


def _same(candidates: Tensor, partners: Tensor) -> Tensor:
    """(C, D), (B, D) -> (C, B): whether a candidate is the same text as a partner."""
    return candidates @ partners.T > SAME


def _cross_entropy(logits: Tensor, same: Tensor) -> Tensor:
    """Logits (B, C), with row i's partner in column i; other columns of the `same` text (B, C) are left out."""
    places = torch.arange(len(logits), device=logits.device)
    others = same.clone()
    others[places, places] = False
    return functional.cross_entropy(logits.masked_fill(others, -torch.inf), places)


def ordered_loss(cosines: Tensor, scores: Tensor) -> Tensor:
    """(B,), (B,) -> (): low where a pair with a higher score has a higher cosine (CoSENT, Su 2022)."""
    apart = SCALE * (cosines[None, :] - cosines[:, None])[scores[:, None] > scores[None, :]]
    return torch.cat([apart, apart.new_zeros(1)]).logsumexp(0)
