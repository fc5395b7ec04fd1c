"""Small models that nobody trained, and what their cards say: what export starts from."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from heedful.export.bundle import TrainedModel
from heedful.models.composed_words import ComposedWords
from heedful.models.heads import ClassificationHead, NLIHead, RelatednessHead
from heedful.models.masks import token_mask
from heedful.models.pooling import mean_pooling
from heedful.models.registry import ENCODERS, build
from heedful.models.sentence import Encoder, Explanation, SentenceEncoder, word_table
from heedful.runtime.bundles.card import ParserCard, TrainingCard
from heedful.text.composition import SIGNATURE
from heedful.text.kinds import Kind
from heedful.text.vocab import Vocab
from tests.builders import build_pieces
from tests.transformer import LIMIT, tiny_transformer
from tools.encoders.average import mean_share

DIM, WORDS, MAX_TOKENS = 24, 50, 40
ROWS = 2048
"""Of the features that compose words."""
LABELS: dict[Kind, tuple[str, ...]] = {
    "nli": ("contradiction", "entailment", "neutral"),
    "classification": ("negative", "positive"),
    "relatedness": (),
    "embedding": (),
}


class Average(Encoder):
    """The mean of the word vectors, twice: quick to export where the encoder does not matter."""

    dim, inputs = 2 * DIM, ()

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return mean_pooling(x, token_mask(lengths, x.shape[1])).repeat(1, 2)

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        mask = token_mask(lengths, x.shape[1])
        return Explanation(self(x, lengths), x, pooling={"mean": mean_share(mask)})


def classifier(name: str, parser: ParserCard, **encoder: Any) -> TrainedModel:
    """The encoder `name` of the registry under its paper's head, with random weights from a seed."""
    torch.manual_seed(0)
    config = {"dim": DIM, "max_tokens": MAX_TOKENS, **encoder}
    made = build(name, config)
    over = "cls" in made.inputs  # a transformer
    words = tiny_transformer(DIM) if over else word_table(torch.randn(WORDS, DIM), frozen=False)
    model = SentenceEncoder(words, made)
    card = _card(parser) | ({"vocab": build_pieces(LIMIT)} if over else {})
    labels = LABELS["classification"]
    head = ENCODERS[name].classification(model.encoder.dim, hidden=16, classes=len(labels))
    return TrainedModel(
        encoder=name,
        config=config,
        model=model,
        head=head,
        kind="classification",
        labels=labels,
        **card,
    )


def trained(
    kind: Kind, *, average: bool = False, head: nn.Module | None = None, **encoder: Any
) -> TrainedModel:
    """Random weights from a seed; `encoder` are keywords of the encoder, `head` replaces the head."""
    torch.manual_seed(0)
    config = {"dim": DIM, "hidden": 20, "max_tokens": MAX_TOKENS, **encoder}
    table = word_table(torch.randn(WORDS, DIM), frozen=False)
    model = SentenceEncoder(table, Average() if average else build("ms-san", config))
    heads: dict[Kind, nn.Module | None] = {
        "nli": NLIHead(2 * DIM, hidden=16, dropout=0.3),
        "classification": ClassificationHead(2 * DIM, hidden=16, classes=2),
        "relatedness": RelatednessHead(2 * DIM, hidden=16),
        "embedding": None,
    }
    return TrainedModel(
        encoder="ms-san",
        config=config,
        model=model,
        head=head or heads[kind],
        kind=kind,
        labels=LABELS[kind],
        **_card(ParserCard(name="en_tiny", fingerprint="0" * 64)),
    )


def composed() -> TrainedModel:
    """A classifier whose unlisted words are composed from random features."""
    made = trained("classification")
    table = made.model.embedding
    assert isinstance(table, nn.Embedding)
    assert isinstance(made.vocab, Vocab)
    words = ComposedWords(table, rows=ROWS, signature=SIGNATURE)
    words.reset(torch.Generator().manual_seed(1))
    model = SentenceEncoder(words, made.model.encoder)
    return replace(made, model=model, vocab=Vocab(made.vocab.words[2:], ROWS))


def _card(parser: ParserCard) -> dict[str, Any]:
    """What is the same for all of them."""
    return {
        "vocab": Vocab(f"word{i}" for i in range(WORDS - 2)),
        "task": "toy",
        "max_tokens": MAX_TOKENS,
        "alpha": 0.5,
        "parser": parser,
        "scores": (),
        "training": TrainingCard(
            data=(), vectors="random", seed=0, epochs=0, config="", command="", commit=""
        ),
        "licence": "Apache-2.0",
    }
