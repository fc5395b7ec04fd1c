"""Explanations and tokens as dictionaries: the answers of /explain and /tokenize."""

from typing import Any

import numpy as np

from heedful.runtime.answers import TokenizedText
from heedful.runtime.bundles.card import Card
from heedful.runtime.explain.explain import ExplainResult
from heedful.runtime.explain.graph import ExplainOutputs
from heedful.text.trees import to_conllu, to_displacy

TOKEN_FIELDS = ("id", "text", "start", "stop", "head", "dep", "known", "composed")


def tokens(text: TokenizedText) -> list[dict[str, Any]]:
    """The text's tokens, as POST /tokenize lists them."""
    parse = text.parse
    columns = zip(
        text.ids.tolist(),
        parse.tokens,
        parse.starts,
        parse.stops,
        parse.heads.tolist(),
        parse.deps,
        text.known.tolist(),
        text.composed.tolist(),
        strict=True,
    )
    return [dict(zip(TOKEN_FIELDS, row, strict=True)) for row in columns]


def explanation(card: Card, texts: list[TokenizedText], result: ExplainResult) -> dict[str, Any]:
    """The answer of POST /explain (docs/explain.md), with numpy arrays in place of lists."""
    return {
        "model": card.name,
        "priors": result.priors,
        "sentences": list(map(_sentence, texts, result.sentences)),
        **result.fields,  # orjson writes dataclasses
    }


def _sentence(text: TokenizedText, explanation: ExplainOutputs) -> dict[str, Any]:
    def weights(kind: str) -> list[dict[str, Any]]:
        return [
            {"name": name, "weights": np.ascontiguousarray(array[0])}
            for name, array in getattr(explanation, kind).items()
        ]

    return {
        "text": text.parse.text,
        "tokens": tokens(text),
        "tree": {"displacy": to_displacy(text.parse), "conllu": to_conllu(text.parse)},
        **{kind: weights(kind) for kind in ("maps", "gate", "pooling")},
    }
