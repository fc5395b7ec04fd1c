"""The loaded models, and the choice of the one that answers a request."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from heedful.runtime.bundles.card import CARD, Card
from heedful.runtime.errors import BundleError, UnknownModel, WrongTask
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.kinds import ENGLISH, NEGATIVE, POSITIVE, Kind
from heedful.text.parse import Parser

Task = Literal["embed", "classify", "zero-shot", "nli", "relatedness", "explain"]

KINDS: Mapping[Task, tuple[Kind, ...]] = {
    "embed": ("embedding", "nli", "classification", "relatedness"),
    "classify": ("classification",),
    "zero-shot": ("embedding", "nli"),
    "nli": ("nli",),
    "relatedness": ("relatedness",),
    "explain": ("classification", "embedding", "nli", "relatedness"),
}
"""Kinds of models for a task. Without a named model, the default model of the first kind that is loaded answers."""


class ModelRegistry:
    """Models by name, sorted. Immutable: a reload creates another registry."""

    def __init__(self, models: Mapping[str, LoadedModel]) -> None:
        self.models = models
        self.cards: Mapping[str, Card] = {name: model.card for name, model in models.items()}
        self.precisions = {name: model.precision for name, model in models.items()}
        """The precision of each model's matrix products, "int8" or "float32"."""
        cards = list(self.cards.values())
        versions = sorted((card.name, card.version) for card in cards)
        self.version = hashlib.sha256(repr(versions).encode()).hexdigest()
        """A hash of the models' names and versions."""
        self.defaults: Mapping[Task, str] = {
            task: card.name for task, kinds in KINDS.items() if (card := default_of(cards, kinds))
        }
        """The default model of each task for which there is a model."""
        self.provider = next((m.encoder.session.provider for m in models.values()), "")
        """The execution provider in use; "" if nothing is loaded."""
        self.sentiment = sentiment_of(cards)
        """The name of the first sentiment model for texts of many kinds; None without one."""

    def choose(self, task: Task, name: str | None) -> LoadedModel:
        """The named model or the task's default. Raises UnknownModel, WrongTask."""
        kinds = KINDS[task]
        if name is None:
            if task not in self.defaults:
                names = " or ".join(kinds)
                raise UnknownModel(
                    f"no loaded model does {task}: add a bundle of the kind {names} and reload"
                )
            return self.models[self.defaults[task]]
        if name not in self.models:
            known = ", ".join(self.models) or "none"
            message = f"there is no model {name[:100]!r}; known are: {known}"
            raise UnknownModel(message, param="model")
        if self.cards[name].kind not in kinds:
            others = [name for name, card in self.cards.items() if card.kind in kinds]
            message = f"{name} does not do {task}; models that do: {', '.join(others) or 'none'}"
            raise WrongTask(message, param="model")
        return self.models[name]


EVERYDAY = "sentiment"
"""The task whose models were trained for texts of many kinds."""


def is_sentiment(card: Card) -> bool:
    """Whether the model tells positive from negative texts of many kinds."""
    return card.task == EVERYDAY and {NEGATIVE, POSITIVE} <= set(card.labels)


def sentiment_of(cards: Iterable[Card]) -> str | None:
    """The name of the first sentiment model for texts of many kinds; None without one."""
    return next((card.name for card in cards if is_sentiment(card)), None)


def default_of(cards: Sequence[Card], kinds: Sequence[str]) -> Card | None:
    """The default of the first of `kinds` of which there are cards; None without any."""
    for kind in kinds:
        if candidates := [card for card in cards if card.kind == kind]:
            return default(candidates)
    return None


def default(cards: Sequence[Card]) -> Card:
    """The first card, or a card with the same labels and a better score on the same dev split.

    Cards of the task EVERYDAY come first: the others are for one kind of text.
    """
    everyday = [card for card in cards if card.task == EVERYDAY]
    first, *_ = everyday or cards
    measure, _ = _dev_score(first)
    comparable = [
        card for card in cards if card.labels == first.labels and _dev_score(card)[0] == measure
    ]
    return max([first, *comparable], key=lambda card: _dev_score(card)[1])  # the first of equals


def _dev_score(card: Card) -> tuple[tuple[str, str] | None, float]:
    """The dataset and the metric of the score on dev, and its value; None and 0 without such a score."""
    dev = (score for score in card.scores if score.split == "dev")
    return next((((score.dataset, score.metric), score.value) for score in dev), (None, 0.0))


def check_parser(card: Card, parser: Parser) -> None:
    """Raise BundleError for a model that was trained with another parser.

    The parser is part of the model: another parser gives other trees and other answers.
    """
    same_words = not card.needs_parser and parser.name == ENGLISH
    if card.parser.fingerprint != parser.fingerprint and not same_words:
        loaded = f"{parser.name} ({parser.fingerprint[:12]})" if parser.trees else "none"
        reason = (
            f"was made with the parser {card.parser.name} ({card.parser.fingerprint[:12]}), "
            f"but {loaded} is loaded: set the parser that belongs to it, or train and export it again"
        )
        raise BundleError(card.name, CARD, reason)
