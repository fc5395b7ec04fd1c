"""Bodies of `/explain`: the request, and what each number of the answer means."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, Tag

from heedful.app.schemas.base import StrictModel, by_shape
from heedful.app.schemas.request_bodies import ConfidenceOption, Pair, TruncateOption
from heedful.app.schemas.response_bodies import Token, Trust
from heedful.app.schemas.tree_bodies import Item, TaggedTextOrTree, Trees
from heedful.runtime.explain.run import MAX_ALPHA


class Priors(StrictModel):
    """Only priors that the model has; others are refused. Omitted ones stay as trained."""

    direction: bool | None = Field(
        None, description="Whether attention heads are bound to a direction."
    )
    word: bool | None = Field(None, description="Whether the word distance counts.")
    dependency: bool | None = Field(None, description="Whether the tree distance counts.")
    alpha: float | None = Field(None, ge=0, le=MAX_ALPHA, description="Weight of every distance.")


class Related(StrictModel):
    """A pair for a relatedness model."""

    a: Item
    b: Item


class ExplainRequest(TruncateOption, ConfidenceOption):
    inputs: Annotated[
        TaggedTextOrTree | Annotated[Pair, Tag("<premise>")] | Annotated[Related, Tag("<a>")],
        by_shape(
            "must be a string, a tree, or an object with premise and hypothesis, or a and b",
            *("premise", "a", "displacy", "conllu"),
        ),
        Field(description="A text, or a pair for a model that compares two. No list."),
    ]
    priors: Priors = Field(
        default_factory=Priors, description="Priors to switch off, and another alpha."
    )
    ablation: bool = Field(False, description="Also answer without each prior.")
    evidence: bool = Field(False, description="Also answer without each token in turn.")


class Map(BaseModel):
    """An attention map. Each row sums to 1; weights that a prior forbids are exactly 0."""

    name: str
    weights: list[list[float]] = Field(
        description="[q][k]: how much token q takes from token k. One row if the whole sentence attends."
    )


class Weights(BaseModel):
    name: str
    weights: list[float] = Field(description="One per token.")


class Sentence(BaseModel):
    text: str
    tokens: list[Token]
    tree: Trees = Field(description="The tree that was used; either shape may be sent as an input.")
    maps: list[Map]
    gate: list[Weights] = Field(
        description="Between 0 and 1, the mean over features: how much of a token stays unchanged."
    )
    pooling: list[Weights] = Field(
        description="How much of each token enters the sentence vector; sums to 1."
    )


class Prediction(BaseModel):
    label: str | None = Field(description="null where the model abstains.")
    scores: dict[str, float]


class Ablation(BaseModel):
    """The answer without one prior, everything else as requested."""

    prior: str
    cosine: float = Field(
        description="Between the sentence vectors with and without it (mean over a pair)."
    )
    prediction: Prediction | None = None
    relatedness: float | None = None
    change: dict[str, float] | None = Field(
        None, description="Scores or relatedness without it, minus with it."
    )
    flips: bool | None = Field(None, description="Whether the label changes.")


class Correlation(BaseModel):
    kind: Literal["maps", "pooling", "gate"]
    name: str
    value: float | None = Field(
        description="Spearman's, of the weights with the size of the evidence; null if one is constant. "
        "A map's weight of a token is what all tokens take from it, on average."
    )


class SentenceEvidence(BaseModel):
    weights: list[float] = Field(
        description="One per token: the score with the token minus the score without it. "
        "Above 0 it speaks for the answer, below 0 against it."
    )
    margins: list[float] | None = Field(
        description="The same of the label's log-odds, ln(p / (1 - p)): they tell words apart where p rounds to 1. "
        "null without labels."
    )
    correlations: list[Correlation]


class Evidence(BaseModel):
    of: str = Field(
        description="What changes: the most probable label's score, the relatedness, or the cosine to the "
        "full vector, which can only fall."
    )
    sentences: list[SentenceEvidence | None] = Field(
        description="Each sentence in turn, the other one whole; null if it has one token."
    )


class ExplainAnswer(BaseModel):
    model: str
    priors: Priors = Field(description="The model's priors as they were used.")
    sentences: list[Sentence] = Field(description="One sentence, or the two of a pair.")
    prediction: Prediction | None = Field(None, description="For a model with labels.")
    relatedness: float | None = Field(
        None, description="From 1 to 5, for a pair and a relatedness model."
    )
    similarity: list[list[float]] | None = Field(
        None,
        description="Cosine of each token of the first sentence (rows) with each of the second.",
    )
    ablation: list[Ablation] | None = Field(None, description="If requested.")
    evidence: Evidence | None = Field(None, description="If requested.")
    trust: Trust | None = Field(None, description="If requested.")
