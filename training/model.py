"""The model of a configuration: word vectors, encoder and head."""

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from heedful.models.aligned_words import AlignedNLIHead
from heedful.models.composed_words import ComposedWords
from heedful.models.pieces import PieceEmbedding
from heedful.models.registry import build, head_of
from heedful.models.sentence import SentenceEncoder, word_table
from heedful.text import composition
from heedful.text.batch import Batch
from heedful.text.kinds import RELATEDNESS_LEVELS, Kind
from heedful.training import transformer
from heedful.training.config import RunConfig, TransformerConfig
from heedful.training.errors import ConfigError

LENGTH_BUCKETS = 4
"""Parts of similar lengths that a batch of mixed lengths is split into, to limit padding."""


ParameterGroups = tuple[list[dict[str, Any]], list[nn.Parameter]]
"""Groups of dense parameters, some with a learning rate (torch.optim), and the sparse ones of word tables."""


class Trainable(nn.Module):
    """A model that the loop can train."""

    def experts(self, batch: list[Any]) -> tuple[Tensor, ...]:
        """Logits (B, classes), each of which has its own loss; `forward` combines them."""
        raise NotImplementedError

    def trained_state_dict(self) -> dict[str, Tensor]:
        """The weights that a run keeps."""
        raise NotImplementedError

    def parameter_groups(self, section: TransformerConfig | None) -> ParameterGroups:
        raise NotImplementedError

    def encoder_parameters(self) -> Iterator[nn.Parameter]:
        """The encoder's parameters, without word vectors, transformer and head; the log counts them."""
        raise NotImplementedError


class TrainingModel(Trainable):
    """An encoder and its head: one `Batch` per side -> vectors -> logits.

    A head with batch norm learns from batches of `mixed` lengths: batches of one length would normalise the influence
    of the length away, which dev, read with fixed statistics, does not.
    """

    alpha: Tensor

    def __init__(
        self, sentence: SentenceEncoder, head: nn.Module, alpha: float, *, frozen: bool = False
    ) -> None:
        """A `frozen` sentence encoder has no dropout in training either."""
        super().__init__()
        self.sentence, self.head = sentence, head
        self.mixed = any(isinstance(module, nn.BatchNorm1d) for module in head.modules())
        self.register_buffer("alpha", torch.tensor(alpha), persistent=False)
        self.pretrained = _frozen_weights(sentence.embedding)
        self.frozen = frozen

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.sentence.train(mode and not self.frozen)
        return self

    def trained_state_dict(self) -> dict[str, Tensor]:
        """The state dict without the frozen weights of a transformer."""
        state = self.state_dict()
        return {name: weight for name, weight in state.items() if name not in self.pretrained}

    def load_trained(self, weights: Mapping[str, Tensor]) -> None:
        """Load the weights of `trained_state_dict`. Raises RuntimeError where they are another model's."""
        missing, unexpected = self.load_state_dict(weights, strict=False)
        if mismatches := [*unexpected, *(set(missing) - self.pretrained)]:
            raise RuntimeError(f"weights of another model: {min(mismatches)}")

    def encoder_parameters(self) -> Iterator[nn.Parameter]:
        return self.sentence.encoder.parameters()

    def parameter_groups(self, section: TransformerConfig | None) -> ParameterGroups:
        """A transformer's weights are dense, at their own rate; tables of words are sparse."""
        embedding = self.sentence.embedding
        tables = [module for module in embedding.modules() if isinstance(module, nn.Embedding)]
        parts = [embedding] if section else tables
        inputs = [p for part in parts for p in part.parameters()]
        apart = set(map(id, inputs))
        dense = [{"params": [p for p in self.parameters() if id(p) not in apart]}]
        if not section:
            return dense, [p for p in inputs if p.requires_grad]
        assert isinstance(embedding, PieceEmbedding)
        layers = transformer.layer_groups(embedding.transformer, section)
        return [*dense, *(layer for layer in layers if layer["params"])], []

    def forward(self, sides: list[Batch]) -> Tensor:
        """Batches of B sentences each -> (B, classes)."""
        logits: Tensor = self.head(*map(self.encode, sides))
        return logits

    def experts(self, sides: list[Batch]) -> tuple[Tensor, ...]:
        vectors = map(self.encode, sides)
        if isinstance(self.head, AlignedNLIHead):
            return self.head.experts(*vectors)
        return (self.head(*vectors),)

    def encode(self, side: Batch) -> Tensor:
        """A batch of B sentences -> (B, D)."""
        if not self.mixed or not self.training:
            return self._encode(side)
        order = np.argsort(side.lengths, kind="stable")
        parts = np.array_split(order, min(LENGTH_BUCKETS, len(order)))
        vectors = torch.cat([self._encode(side.rows(part)) for part in parts])
        return vectors[torch.from_numpy(np.argsort(order)).to(vectors.device)]

    def _encode(self, side: Batch) -> Tensor:
        device = self.alpha.device
        ids, lengths, heads = (
            torch.from_numpy(array).to(device) for array in (side.ids, side.lengths, side.heads)
        )
        pieces, features = (
            None if array is None else torch.from_numpy(array).to(device)
            for array in (side.pieces, side.features)
        )
        vectors: Tensor = self.sentence(ids, lengths, heads, self.alpha, pieces, features)
        return vectors


def _frozen_weights(embedding: nn.Module) -> set[str]:
    """The names of a transformer's weights that are not trained."""
    if not isinstance(embedding, PieceEmbedding):
        return set()
    weights = embedding.named_parameters(prefix="sentence.embedding")
    return {name for name, weight in weights if not weight.requires_grad}


def make_model(
    config: RunConfig, kind: Kind, classes: int, words: Tensor | nn.Module
) -> TrainingModel:
    """Build the model over a (V, D) table of word vectors or a transformer.

    Raises ConfigError where the encoder reads [CLS] and there is no transformer.
    """
    encoder = build(config.encoder.name, config.encoder_keywords())
    if isinstance(words, nn.Module):
        section = config.transformer
        assert section is not None, "a transformer comes from this section"
        frozen = "transformer" in config.freeze and not config.init_from
        embedding: nn.Module = PieceEmbedding(words, frozen=frozen, sentence=section.sentence)
    else:
        table = word_table(words, frozen="words" in config.freeze, four_bits=config.words.four_bits)
        rows = config.words.subword_rows
        signature = composition.SIGNATURE
        embedding = ComposedWords(table, rows=rows, signature=signature) if rows else table
    projection = nn.Linear(encoder.dim, config.distillation.size) if kind == "embedding" else None
    try:
        sentence = SentenceEncoder(embedding, encoder, projection)
    except ValueError as error:
        raise ConfigError(f"encoder.name: {config.encoder.name}: {error}") from error
    head = make_head(config, kind, classes, encoder.dim)
    frozen = {"encoder", "transformer"} <= set(config.freeze)
    return TrainingModel(sentence, head, config.alpha, frozen=frozen)


def make_head(config: RunConfig, kind: Kind, classes: int, dim: int) -> nn.Module:
    """The head of the task's kind; an embedding has none."""
    if kind == "embedding":
        return nn.Identity()
    outputs = {"scores": RELATEDNESS_LEVELS} if kind == "relatedness" else {"classes": classes}
    return head_of(config.encoder.name, kind)(dim, **outputs, **config.head.model_dump())
