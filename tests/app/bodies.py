"""Requests for every route that works."""

from typing import Any

INFER = "/v2/models/{model}/infer"
AVERAGED = {"/v1/rerank", "/v2/rerank"}
"""Routes that no text is too long for."""


def bodies(text: str, *, truncate: bool = False, count: int = 1) -> dict[str, dict[str, Any]]:
    """A body for each route; every text in it is `text`, every list holds `count` of them."""
    texts = [text] * count
    pairs = [{"premise": text, "hypothesis": text}] * count
    return {
        "/": {"inputs": texts, "truncate": truncate},
        "/embed": {"inputs": texts, "truncate": truncate},
        "/v1/embeddings": {"input": texts, "model": "tiny-flat", "truncate": truncate},
        "/nli": {"pairs": pairs, "truncate": truncate},
        "/relatedness": {"pairs": [{"a": text, "b": text}] * count, "truncate": truncate},
        "/classify": {"inputs": texts, "truncate": truncate},
        "/predict": {"inputs": [[text, text]] * count, "truncate": truncate},
        "/similarity": {
            "inputs": {"source_sentence": text, "sentences": texts},
            "parameters": {"truncate": truncate},
        },
        "/rerank": {"query": text, "texts": texts, "truncate": truncate},
        "/v1/rerank": {"query": text, "documents": texts},
        "/v2/rerank": {"query": text, "documents": texts},
        "/v2/embed": {
            "model": "tiny-flat",
            "texts": texts,
            "embedding_types": ["float", "ubinary"],
            "truncate": "END" if truncate else "NONE",
        },
        INFER: {
            "inputs": [{"name": "text", "shape": [count], "datatype": "BYTES", "data": texts}],
            "parameters": {"truncate": truncate},
        },
        "/tokenize": {"inputs": texts, "truncate": truncate},
        "/explain": {"inputs": text, "truncate": truncate},
    }


def path_of(route: str, model: object = "tiny-flat") -> str:
    """A path of the route."""
    return route.replace("{model}", str(model))
