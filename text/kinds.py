"""The kinds of models, as training, cards and the service name them."""

from typing import Literal, get_args

Kind = Literal["nli", "classification", "relatedness", "embedding"]
NLILabel = Literal["entailment", "neutral", "contradiction"]
NLI_LABELS: tuple[NLILabel, ...] = get_args(NLILabel)
NEGATIVE, POSITIVE = "negative", "positive"
"""Labels that every sentiment model has."""
RELATEDNESS_LEVELS = 5
"""A relatedness head has one logit for each score from 1 to this."""
HEAD_INPUTS: dict[Kind, tuple[str, ...]] = {
    "nli": ("first", "second"),
    "relatedness": ("first", "second"),
    "classification": ("sentence",),
    "embedding": (),
}
"""Inputs of head.onnx, each a sentence vector (B, D): those of a pair (premise first), or one; no head."""
ENGLISH = "en_heedful_arcs"
"""Name of the pipelines that split words by the rules of `text.english`."""
