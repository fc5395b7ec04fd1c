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
"""What the labels of the shipped classifiers say, by task."""


def bundles(folder: str | Path | None = None) -> list[dict[str, Any]]:
    """A row for each bundle: its name, kind, size, licence and use. Where two have a name, the one that is loaded.

    They are looked up in `folder`, by default where `heedful.load` looks. Raises BundleError for a broken card.
    """
    cards: dict[str, tuple[Path, Card]] = {}
    for place in [Path(folder)] if folder else shipped.search_folders():
        for file in sorted(place.glob(f"*/{CARD}")):
            cards.setdefault(file.parent.name, (file.parent, read_card(file.parent)))
    return [
        {
            "name": name,
            "kind": card.kind,
            "size": f"{sum(file.stat().st_size for file in place.iterdir()) / 1e6:.0f} MB",
            "licence": card.licence,
            "use": use(card),
        }
        for name, (place, card) in cards.items()
    ]


def use(card: Card) -> str:
    """What the model does, in one line."""
    if card.kind == "classification":
        return f"{SUBJECTS.get(card.task, 'one of')}: {', '.join(card.labels)}"
    return {
        "embedding": f"search and similarity: vectors of {card.dimension} values",
        "nli": "whether one text follows from another",
        "relatedness": "how related two texts are, 1 to 5",
    }[card.kind]
