"""Bodies of `/explain`: the request, and what each number of the answer means."""

from typing import Annotated, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from heedful.app.schemas.base import StrictModel, Text
from heedful.app.schemas.given_trees import ConlluTree, DisplacyTree, Item, Trees, shape
from heedful.app.schemas.request_bodies import Cutting, Pair, Trusting
from heedful.app.schemas.response_bodies import Token, Trust
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


def _item_or_pair(value: object) -> str | None:
    for tag, kind, first in (("<pair>", Pair, "premise"), ("<related>", Related, "a")):
        if isinstance(value, kind) or (isinstance(value, dict) and first in value):
            return tag
    return shape(value)


class ExplainRequest(Cutting, Trusting):
    inputs: Annotated[
        Annotated[Text, Tag("<text>")]
        | Annotated[DisplacyTree, Tag("<displacy>")]
        | Annotated[ConlluTree, Tag("<conllu>")]
        | Annotated[Pair, Tag("<pair>")]
        | Annotated[Related, Tag("<related>")],
        Discriminator(
            _item_or_pair,
            custom_error_type="inputs_type",
            custom_error_message=(
                "must be a string, a tree, or an object with premise and hypothesis, or a and b"
            ),
        ),
        Field(description="A text, or a pair for a model that compares two. No list."),
    ]
    priors: Priors = Field(
        default_factory=Priors, description="Priors to switch off, and another alpha."
    )
    ablation: bool = Field(False, description="Also answer without each prior.")
    faithfulness: bool = Field(False, description="Also answer without the most attended tokens.")
    k: int = Field(1, ge=1, description="Number of tokens that faithfulness deletes.")
    evidence: bool = Field(False, description="Also answer without each token in turn.")
    gradients: bool = Field(
        False,
        description="Evidence by integrated gradients too: the score's, on the way from zero vectors to the "
        "words'; up to 48 tokens a sentence.",
    )
    curves: bool = Field(
        False,
        description="Also remove more and more tokens, by attention, by evidence and at random; "
        "up to 24 tokens a sentence.",
    )


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
        description="How much of each token enters the sentence vector; sums to 1. "
        "`faithfulness` ranks tokens by the first one."
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


class Deletion(BaseModel):
    """Drops in the most probable label's score, or in the cosine to the vector if there are no labels."""

    attended: list[int] = Field(description="The k most attended tokens, most attended first.")
    drop: float = Field(description="The drop when they are deleted.")
    random: float = Field(description="The mean drop when k random tokens are deleted.")
    spread: float = Field(description="Standard deviation over the draws.")


class Faithfulness(BaseModel):
    """If attention shows what matters, `drop` is well above `random`."""

    k: int
    draws: int
    sentences: list[Deletion | None] = Field(
        description="Each sentence in turn, the other one whole; null if it has no more than k tokens."
    )


class Correlation(BaseModel):
    kind: Literal["maps", "pooling", "gate"]
    name: str
    value: float | None = Field(
        description="Spearman's, of the weights with the size of the evidence; null if one is constant. "
        "A map's weight of a token is what all tokens take from it, on average."
    )


class Gradients(BaseModel):
    weights: list[float] = Field(
        description="One per token, signed; they sum to `score` - `baseline`, but for `error`."
    )
    score: float = Field(description="As computed in float32.")
    baseline: float = Field(
        description="The score with a zero vector for every word of the sentence, with its tree and positions."
    )
    error: float | None = Field(
        description="Completeness: |sum of weights - (score - baseline)| / |score - baseline|; null if "
        "these are equal."
    )
    spread: float = Field(
        description="How sure the weights are: the distance of the two orders in which the words were moved from "
        "their mean, summed over tokens, relative to the sum of |weights|."
    )
    intervals: int = Field(description="That the way was cut into.")
    correlations: list[Correlation] = Field(description="With the size of these weights.")


class SentenceEvidence(BaseModel):
    weights: list[float] = Field(
        description="One per token: the score with the token minus the score without it. "
        "Above 0 it speaks for the answer, below 0 against it."
    )
    correlations: list[Correlation]
    gradients: Gradients | None = Field(None, description="If requested, else null.")


class Evidence(BaseModel):
    of: str = Field(
        description="What changes: the most probable label's score, the relatedness, or the cosine to the "
        "full vector, which can only fall."
    )
    sentences: list[SentenceEvidence | None] = Field(
        description="Each sentence in turn, the other one whole; null if it has one token."
    )


class Curve(BaseModel):
    name: Literal["attention", "evidence", "random"]
    comprehensiveness: list[float] = Field(
        description="Drops without the first k = 1 .. L - 1 tokens of the order: high is good."
    )
    sufficiency: list[float] = Field(description="Drops with the first k alone: low is good.")
    normalised_comprehensiveness: float | None = Field(
        description="The mean drop, 1 at the best order found and 0 at the worst; null if all are equal."
    )
    normalised_sufficiency: float | None


class OrderCurves(BaseModel):
    best: list[float] = Field(description="Drops of the best order found, by greedy search.")
    worst: list[float]
    orders: list[Curve]


class SentenceCurves(BaseModel):
    deleted: OrderCurves = Field(description="Removed tokens are left out.")
    masked: OrderCurves = Field(
        description="Removed tokens stay in place as a zero vector, or as [UNK] in a model of pieces."
    )


class CurvesAnswer(BaseModel):
    of: str = Field(description="As in `evidence`.")
    sentences: list[SentenceCurves | None]


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
    faithfulness: Faithfulness | None = Field(None, description="If requested.")
    evidence: Evidence | None = Field(None, description="If requested.")
    curves: CurvesAnswer | None = Field(None, description="If requested.")
    trust: Trust | None = Field(None, description="If requested.")
