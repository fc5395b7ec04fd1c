"""all-MiniLM-L6-v2 fine-tuned on a few labelled texts, so that its vectors tell their classes apart.

Tunstall et al. 2022, "Efficient Few-Shot Learning Without Prompts" (SetFit, arXiv 2209.11055): the cosine of two
texts of one class shall be 1, that of others 0. All pairs of a batch are learned at once, and the pairs of one
class weigh as much as the others together. Sizes were chosen on dev (docs/experiments.md).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from rich.progress import track
from torch import Tensor
from torch.nn import functional

from heedful.training import minilm
from heedful.training.minilm import MiniLM

STEPS, BATCH = 60, 16
RATE = 5e-5
WARM_UP = 0.1
"""Share of the steps in which the rate rises; it falls to 0 in the others."""
LONGEST = 64
"""Word pieces of a text that are read in training."""


def fine_tune(texts: Sequence[str], targets: npt.NDArray[np.bool_], *, seed: int) -> MiniLM:
    """From N texts and their classes (N, C), one or several each. Raises DataMissing."""
    tuned = minilm.load()
    torch.manual_seed(seed)
    classes = torch.from_numpy(targets.astype(np.float32))
    optimizer = torch.optim.AdamW(tuned.model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        RATE,
        total_steps=STEPS,
        pct_start=WARM_UP,
        anneal_strategy="linear",
        cycle_momentum=False,
    )
    tuned.model.train()
    batches = _batches(len(texts), np.random.default_rng(seed))
    for rows in track(batches, "fine-tuning MiniLM", total=STEPS, transient=True):
        vectors = functional.normalize(
            minilm.pooled(tuned, [texts[row] for row in rows], LONGEST), dim=-1
        )
        loss = pair_loss(vectors, classes[rows])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tuned.model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    tuned.model.eval()
    return tuned


def pair_loss(vectors: Tensor, classes: Tensor) -> Tensor:
    """Unit vectors (B, E), classes (B, C) of 0 and 1 -> the mean squared error of the cosines.

    Two texts of several classes each shall have the share of these that they have in common.
    """
    common = classes @ classes.T
    either = classes.sum(1)[:, None] + classes.sum(1) - common
    wanted = common / either.clamp(min=1)
    pairs = ~torch.eye(len(vectors), dtype=torch.bool)
    errors = (vectors @ vectors.T - wanted) ** 2
    alike = (wanted > 0) & pairs
    sides = [errors[side] for side in (alike, pairs & ~alike) if side.any()]
    return torch.stack([side.mean() for side in sides]).mean()


def _batches(count: int, random: np.random.Generator) -> Iterator[list[int]]:
    """STEPS batches; each row comes once before any comes again."""
    order: list[int] = []
    for _ in range(STEPS):
        while len(order) < BATCH:
            order += random.permutation(count).tolist()
        yield order[:BATCH]
        del order[:BATCH]
