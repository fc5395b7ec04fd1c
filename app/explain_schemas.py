"""Bodies of `/explain`: what may be asked, and what each number of the answer is."""

from typing import Annotated

from pydantic import BaseModel, Discriminator, Field, Tag

from heedful.app.schemas import Cutting, Pair, Token
from heedful.app.trees import Closed, ConlluTree, DisplacyTree, Item, Trees, shape


class Priors(Closed):
    """Only those that the model has: any other is refused. What is left out stays as trained."""

    direction: bool | None = Field(None, description="Whether heads are bound to a direction.")
    word: bool | None = Field(None, description="Whether the word distance counts.")
    dependency: bool | None = Field(None, description="Whether the tree distance counts.")
    alpha: float | None = Field(None, ge=0, le=100, description="Weight of every distance.")


class Related(Closed):
    """A pair for a relatedness model."""

    a: Item
    b: Item


def _item_or_pair(value: object) -> str | None:
    for tag, kind, first in (("<pair>", Pair, "premise"), ("<related>", Related, "a")):
        if isinstance(value, kind) or (isinstance(value, dict) and first in value):
            return tag
    return shape(value)


class ExplainRequest(Cutting):
    inputs: Annotated[
        Annotated[str, Tag("<text>")]
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
    ablation: bool = Field(False, description="Answer also without each prior.")
    faithfulness: bool = Field(False, description="Answer also with the most attended tokens gone.")
    k: int = Field(1, ge=1, description="Tokens that faithfulness takes away.")


class Map(BaseModel):
    """Attention. Each row sums to 1; what a prior forbids is exactly 0."""

    name: str
    weights: list[list[float]] = Field(
        description="[q][k]: what token q takes from token k. One row where the sentence attends."
    )


class Weights(BaseModel):
    name: str
    weights: list[float] = Field(description="One a token.")


class Sentence(BaseModel):
    text: str
    tokens: list[Token]
    tree: Trees = Field(description="The tree that was read; either shape may be sent as an input.")
    maps: list[Map]
    gate: list[Weights] = Field(
        description="Between 0 and 1, the mean over features: how much of a token stays what it was."
    )
    pooling: list[Weights] = Field(
        description="How much of each token enters the sentence vector; sums to 1. The first one "
        "is what `faithfulness` goes by."
    )


class Prediction(BaseModel):
    label: str
    scores: dict[str, float]


class Ablation(BaseModel):
    """What the model says without a prior, everything else as asked."""

    prior: str
    cosine: float = Field(description="Of the sentence vectors, with it and without (mean of two).")
    prediction: Prediction | None = None
    relatedness: float | None = None
    change: dict[str, float] | None = Field(
        None, description="Scores, or the relatedness, without it minus with it."
    )
    flips: bool | None = Field(None, description="Whether the label is another one.")


class Deletion(BaseModel):
    """Drops in the predicted label's score; of a model without labels in the cosine to the vector."""

    attended: list[int] = Field(description="The k tokens, the most attended first.")
    drop: float = Field(description="When they are taken away.")
    random: float = Field(description="When k random tokens are: the mean over the draws.")
    spread: float = Field(description="Standard deviation over the draws.")


class Faithfulness(BaseModel):
    """Attention that tells what matters has a `drop` well above `random`."""

    k: int
    draws: int
    sentences: list[Deletion | None] = Field(
        description="Each sentence in turn, the other one whole; null where k tokens are all it has."
    )


class ExplainAnswer(BaseModel):
    model: str
    priors: Priors = Field(description="The priors that the model has, as they were used.")
    sentences: list[Sentence] = Field(description="One, or the two of a pair.")
    prediction: Prediction | None = Field(None, description="Of a model with labels.")
    relatedness: float | None = Field(
        None, description="From 1 to 5, of a pair for a relatedness model."
    )
    similarity: list[list[float]] | None = Field(
        None, description="Cosine of each token of the first (row) with each of the second."
    )
    ablation: list[Ablation] | None = Field(None, description="Where asked for.")
    faithfulness: Faithfulness | None = Field(None, description="Where asked for.")
