"""The model that a configuration describes: word vectors, encoder and head."""

import torch
from torch import Tensor, nn

from models.registry import ENCODERS, build
from models.sentence import SentenceEncoder, word_table
from text.batch import Batch
from training.config import RunConfig
from training.tasks.base import Task


class Model(nn.Module):
    """An encoder and its head: one `Batch` a side -> logits."""

    alpha: Tensor

    def __init__(self, sentence: SentenceEncoder, head: nn.Module, alpha: float) -> None:
        super().__init__()
        self.sentence, self.head = sentence, head
        self.register_buffer("alpha", torch.tensor(alpha), persistent=False)

    def forward(self, sides: list[Batch]) -> Tensor:
        """Batches of B sentences each -> (B, classes)."""
        device = self.alpha.device
        encoded = [
            self.sentence(
                *(torch.from_numpy(a).to(device) for a in (side.ids, side.lengths, side.heads)),
                self.alpha,
            )
            for side in sides
        ]
        logits: Tensor = self.head(*encoded)
        return logits


def make_model(config: RunConfig, task: Task, table: Tensor) -> Model:
    """The model a configuration describes, over a (V, D) table of word vectors."""
    encoder = build(config.encoder.name, config.encoder_keywords())
    entry = ENCODERS[config.encoder.name]
    head = (entry.nli if task.kind == "nli" else entry.classification)(
        encoder.dim,
        classes=len(task.labels),
        hidden=config.head.hidden,
        dropout=config.head.dropout,
    )
    embedding = word_table(table, frozen=config.words.frozen)
    return Model(SentenceEncoder(embedding, encoder), head, config.alpha)
