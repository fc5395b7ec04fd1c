"""The model that a configuration describes: word vectors, encoder and head."""

import torch
from torch import Tensor, nn

from models.pieces import PieceEmbedding
from models.registry import ENCODERS, build
from models.sentence import SentenceEncoder, word_table
from text.batch import Batch
from training.config import RunConfig
from training.errors import ConfigError
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
                None if side.pieces is None else torch.from_numpy(side.pieces).to(device),
            )
            for side in sides
        ]
        logits: Tensor = self.head(*encoded)
        return logits


def make_model(config: RunConfig, task: Task, words: Tensor | nn.Module) -> Model:
    """The model a configuration describes, over a (V, D) table of word vectors or a transformer.

    Raises ConfigError where the encoder reads [CLS] and there is no transformer.
    """
    encoder = build(config.encoder.name, config.encoder_keywords())
    entry = ENCODERS[config.encoder.name]
    head = (entry.nli if task.kind == "nli" else entry.classification)(
        encoder.dim,
        classes=len(task.labels),
        hidden=config.head.hidden,
        dropout=config.head.dropout,
    )
    if isinstance(words, nn.Module):
        frozen = config.transformer is not None and config.transformer.frozen
        embedding: nn.Module = PieceEmbedding(words, frozen=frozen)
    else:
        embedding = word_table(words, frozen=config.words.frozen)
    try:
        sentence = SentenceEncoder(embedding, encoder)
    except ValueError as error:
        raise ConfigError(f"encoder.name: {config.encoder.name}: {error}") from error
    return Model(sentence, head, config.alpha)
