"""Requests for every route that works."""

from typing import Any


def bodies(text: str, *, truncate: bool = False, count: int = 1) -> dict[str, dict[str, Any]]:
    """A body for each route; every text in it is `text`, every list holds `count` of them."""
    texts = [text] * count
    pairs = [{"premise": text, "hypothesis": text}] * count
    return {
        "/": {"inputs": texts, "truncate": truncate},
        "/embed": {"inputs": texts, "truncate": truncate},
        "/v1/embeddings": {"input": texts, "model": "tiny-flat"},
        "/nli": {"pairs": pairs, "truncate": truncate},
        "/relatedness": {"pairs": [{"a": text, "b": text}] * count, "truncate": truncate},
        "/classify": {"inputs": texts, "truncate": truncate},
        "/predict": {"inputs": [[text, text]] * count, "truncate": truncate},
        "/similarity": {
            "inputs": {"source_sentence": text, "sentences": texts},
            "parameters": {"truncate": truncate},
        },
        "/rerank": {"query": text, "texts": texts, "truncate": truncate},
        "/tokenize": {"inputs": texts, "truncate": truncate},
    }
