"""Explanations and tokens as dictionaries: the answers of /explain and /tokenize."""

from typing import Any

import numpy as np

from heedful.runtime.answers import TokenizedText, chosen
from heedful.runtime.bundles.card import Card
from heedful.runtime.explain.explain import DRAWS, ExplainResult
from heedful.runtime.explain.graph import ExplainOutputs
from heedful.text.arrays import Doubles
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


def explanation(
    card: Card, texts: list[TokenizedText], result: ExplainResult, k: int = 1
) -> dict[str, Any]:
    """The answer of POST /explain (docs/explain.md), with numpy arrays in place of lists."""
    priors: dict[str, Any] = dict(result.priors)
    if result.alpha is not None:
        priors["alpha"] = result.alpha
    fields: dict[str, Any] = {
        "model": card.name,
        "priors": priors,
        "sentences": list(map(_sentence, texts, result.sentences)),
    }
    if result.scores is not None:
        fields |= _answer_fields(result.scores, card)
    if result.similarity is not None:
        fields["similarity"] = result.similarity
    if result.ablation is not None:
        fields["ablation"] = [
            {
                "prior": ablation.prior,
                "cosine": ablation.cosine,
                **_change(result.scores, ablation.scores, card),
            }
            for ablation in result.ablation
        ]
    if result.faithfulness is not None:  # orjson writes dataclasses
        fields["faithfulness"] = {"k": k, "draws": DRAWS, "sentences": result.faithfulness}
    for name in ("evidence", "curves"):
        if (sentences := getattr(result, name)) is not None:
            fields[name] = {"of": result.measured, "sentences": sentences}
    return fields


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


def _answer_fields(scores: Doubles, card: Card) -> dict[str, Any]:
    """The model's answer: a label and the labels' scores, or the relatedness of a pair."""
    if not card.labels:
        return {"relatedness": scores.item()}
    by_label = dict(zip(card.labels, scores.tolist(), strict=True))
    return {"prediction": {"label": _label(scores, card), "scores": by_label}}


def _label(scores: Doubles, card: Card) -> str | None:
    """The label of scores (C,), None where the model abstains."""
    (label,) = chosen(card, scores[np.newaxis])
    return label


def _change(before: Doubles | None, after: Doubles | None, card: Card) -> dict[str, Any]:
    if before is None or after is None:
        return {}
    names = card.labels or ("relatedness",)
    change = dict(zip(names, (after - before).tolist(), strict=True))
    flips = {"flips": _label(after, card) != _label(before, card)} if card.labels else {}
    return {**_answer_fields(after, card), "change": change, **flips}
