"""A sentence encoder fine-tuned on a few labelled texts, so that its vectors tell their classes apart.

First contrastive training, then logistic regression on the vectors, as in SetFit (Tunstall et al. 2022, arXiv
2209.11055), with the supervised contrastive loss of Khosla et al. 2020 (arXiv 2004.11362, L_out), which did better
on dev than SetFit's squared error of the cosines (docs/notes/fit.md).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from rich.progress import track
from torch import Tensor
from torch.nn import functional

from heedful.training.config import Device
from heedful.training.optimise import Optimisation, make_schedule
from heedful.training.teachers import Teacher, load

STEPS, BATCH = 60, 16
RATE = 5e-5
WARM_UP = 0.1
"""Share of the steps in which the rate rises; it falls to 0 in the others."""
TEMPERATURE = 0.1
LONGEST = 64
"""Word pieces of a text that training reads."""


def fine_tune(
    encoder: str,
    texts: Sequence[str],
    targets: npt.NDArray[np.bool_],
    *,
    seed: int,
    device: Device = "cpu",
) -> Teacher:
    """The encoder, fine-tuned on N texts and their classes (N, C), one or more. Raises DataMissing, ConfigError."""
    tuned = load(encoder, device)
    torch.manual_seed(seed)
    classes = torch.from_numpy(targets.astype(np.float32)).to(device)
    tuned.model.get_input_embeddings().requires_grad_(False)  # they would take a third of the time
    weights = [weight for weight in tuned.model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=RATE, weight_decay=0.01, fused=True)
    schedule = make_schedule(optimiser, "linear", WARM_UP, STEPS)
    optimisation = Optimisation(tuned.model, [optimiser], [schedule], average=None, clip=1.0)
    tuned.model.train()
    batches = _batches(targets, np.random.default_rng(seed))
    for step, rows in enumerate(track(batches, "fine-tuning the teacher", STEPS, transient=True)):
        with torch.autocast(device, torch.bfloat16):
            vectors = tuned.pooled([texts[row] for row in rows], LONGEST).float()
        loss = contrastive_loss(functional.normalize(vectors, dim=-1), classes[rows])
        optimisation.step(loss, step)
    tuned.model.eval()
    return tuned


def contrastive_loss(vectors: Tensor, classes: Tensor) -> Tensor:
    """Unit vectors (B, E), classes (B, C) of 0 and 1 -> the mean over the texts that share a class with another.

    The loss of a text is the cross entropy of a softmax over the other texts' cosines / TEMPERATURE. Its target is
    spread over the texts of its class; where texts have several classes, by the share that two have in common.
    """
    common = classes @ classes.T
    either = classes.sum(1)[:, None] + classes.sum(1) - common
    itself = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    alike = (common / either.clamp(min=1)).masked_fill(itself, 0)
    logits = (vectors @ vectors.T / TEMPERATURE).masked_fill(itself, -torch.inf)
    likely = logits.log_softmax(dim=1).masked_fill(itself, 0)
    losses = -(alike * likely).sum(1) / alike.sum(1).clamp(min=1e-9)
    return losses.sum() / alike.any(dim=1).sum().clamp(min=1)


def _batches(targets: npt.NDArray[np.bool_], random: np.random.Generator) -> Iterator[list[int]]:
    """STEPS batches of row numbers, each once before any comes again, and for each another row that shares a class."""
    order: list[int] = []
    for _ in range(STEPS):
        while len(order) < BATCH // 2:
            order += random.permutation(len(targets)).tolist()
        rows, order = order[: BATCH // 2], order[BATCH // 2 :]
        partners = [np.flatnonzero((targets & targets[row]).any(axis=1)) for row in rows]
        others = [numbers[numbers != row] for row, numbers in zip(rows, partners, strict=True)]
        yield rows + [int(random.choice(numbers)) for numbers in others if len(numbers)]
