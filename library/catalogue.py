"""heedful.bundles: the bundles that can be loaded by name, and what each does."""

from pathlib import Path
from typing import Any

from heedful.runtime.bundles import shipped
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import CARD, Card

SUBJECTS = {
    "r8": "topic of a Reuters story about trade and companies, no other news",
    "sentiment": "sentiment of everyday texts",
    "sst2": "sentiment of film reviews",
    "sst5": "sentiment of film reviews",
    "trec": "what a question wants to know",
}
"""The subjects of the shipped classifiers' labels, by task."""


def bundles(folder: str | Path | None = None) -> list[dict[str, Any]]:
    """A row for each bundle: its name, kind, size, licence and use. Of two with a name, the one that would be loaded.

    They are those in `folder`, by default in the folders that `heedful.load` searches. Raises BundleError for a broken
    card.
    """
    cards: dict[str, tuple[Path, Card]] = {}
    for parent in [Path(folder)] if folder else shipped.search_folders():
        for file in sorted(parent.glob(f"*/{CARD}")):
            cards.setdefault(file.parent.name, (file.parent, read_card(file.parent)))
    return [
        {
            "name": name,
            "kind": card.kind,
            "size": f"{sum(file.stat().st_size for file in bundle.iterdir()) / 1e6:.0f} MB",
            "licence": card.licence,
            "use": use(card),
        }
        for name, (bundle, card) in cards.items()
    ]


def use(card: Card) -> str:
    """The model's use, in a line."""
    if card.kind == "classification":
        return f"{SUBJECTS.get(card.task, 'one of')}: {', '.join(card.labels)}"
    return {
        "embedding": f"search and similarity: vectors of {card.dimension} values",
        "nli": "whether one text follows from another",
        "relatedness": "how related two texts are, 1 to 5",
    }[card.kind]
