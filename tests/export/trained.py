"""Small models that nobody trained, and what their cards say: what export starts from."""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from heedful.export.bundle import TrainedModel
from heedful.models.composed_words import ComposedWords
from heedful.models.heads import ClassificationHead, NLIHead, RelatednessHead
from heedful.models.registry import ENCODERS, build
from heedful.models.sentence import SentenceEncoder, word_table
from heedful.runtime.bundles.card import ParserCard, TrainingCard
from heedful.text.composition import SIGNATURE
from heedful.text.kinds import Kind
from heedful.text.vocab import Vocab
from tests import builders
from tests.builders import build_pieces
from tests.transformer import LIMIT, tiny_transformer
from tools.encoders.average import Average

DIM, WORDS, MAX_TOKENS = 24, 50, 40
ROWS = 2048
"""Of the features that compose words."""
LABELS: dict[Kind, tuple[str, ...]] = {
    **builders.LABELS,
    "nli": ("contradiction", "entailment", "neutral"),
}


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
    for statistic in head.buffers():  # of batch norm, as if it had been trained
        if statistic.is_floating_point():
            statistic.uniform_(0.5, 2)
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
    """Random weights from a seed; `encoder` are keywords of the encoder, `head` replaces the head.

    An `average` is quick to export, where the encoder does not matter.
    """
    torch.manual_seed(0)
    config = {"dim": DIM, "hidden": 20, "max_tokens": MAX_TOKENS, **encoder}
    table = word_table(torch.randn(WORDS, DIM), frozen=False)
    model = SentenceEncoder(table, Average(dim=DIM) if average else build("ms-san", config))
    heads: dict[Kind, nn.Module | None] = {
        "nli": NLIHead(model.dim, hidden=16, dropout=0.3),
        "classification": ClassificationHead(model.dim, hidden=16, classes=2),
        "relatedness": RelatednessHead(model.dim, hidden=16),
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
