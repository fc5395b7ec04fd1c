"""TEI's /predict: a text goes to a classifier, a pair of texts to an NLI model."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import Discriminator, Field, RootModel, Tag, field_validator
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from heedful.app import answers, inference, schemas
from heedful.app.requests import InferenceRoute

router = APIRouter(route_class=InferenceRoute, responses=answers.ERRORS, tags=["models"])


class TextOrPair(RootModel[list[str]]):
    root: list[str] = Field(json_schema_extra={"minItems": 1, "maxItems": 2})

    @field_validator("root")
    @classmethod
    def _one_or_two(cls, texts: list[str]) -> list[str]:
        if len(texts) not in (1, 2):
            raise PydanticCustomError(
                "length", "must be [text] or the pair [text, text]; a batch is [[text], [text], ..]"
            )
        return texts


class Batch(RootModel[list[TextOrPair]]):
    @field_validator("root")
    @classmethod
    def _all_alike(cls, rows: list[TextOrPair]) -> list[TextOrPair]:
        if len({len(row.root) for row in rows}) > 1:
            raise schemas.unsupported(
                "texts and pairs go to different models; send them in two requests"
            )
        return rows


def _shape(value: object) -> str | None:
    if isinstance(value, str):
        return "<text>"
    if isinstance(value, list):
        return "<batch>" if value and isinstance(value[0], list) else "<row>"
    return None


class PredictRequest(schemas.Request, schemas.Truncation):
    inputs: Annotated[
        Annotated[str, Tag("<text>")]
        | Annotated[TextOrPair, Tag("<row>")]
        | Annotated[Batch, Tag("<batch>")],
        Discriminator(
            _shape,
            custom_error_type="texts_type",
            custom_error_message="must be a text, a pair [text, text], or a list of such lists",
        ),
        Field(description="A text, a pair, or a batch: all [text], or all pairs."),
    ]
    raw_scores: bool = Field(False, description="Logits instead of probabilities.")

    def rows(self) -> tuple[list[list[str]], list[list[str]]]:
        """The texts, and the name of each one's field: one row a text or pair."""
        if isinstance(self.inputs, str):
            return [[self.inputs]], [["inputs"]]
        if isinstance(self.inputs, TextOrPair):
            row = self.inputs.root
            return [row], [[f"inputs[{i}]" for i in range(len(row))]]
        rows = [row.root for row in self.inputs.root]
        return rows, [[f"inputs[{i}][{j}]" for j in range(len(row))] for i, row in enumerate(rows)]


@router.post(
    "/predict", responses=answers.documented(list[schemas.Label] | list[list[schemas.Label]])
)
async def predict(body: PredictRequest, request: Request) -> Response:
    """The labels of each text or pair with their probabilities, the best first."""
    rows, fields = body.rows()
    truncate, raw = bool(body.truncate), body.raw_scores
    if len(rows[0]) == 2:
        service, card = inference.model(request, "nli", body.model)
        pairs = [(first, second) for first, second in rows]
        names = {
            f"pairs[{i}].{side}": field
            for i, row in enumerate(fields)
            for side, field in zip(("premise", "hypothesis"), row, strict=True)
        }
        with inference.called({"pairs": "inputs", **names}):
            result = await service.nli(pairs, model=card.name, truncate=truncate, raw=raw)
    else:
        service, card = inference.model(request, "classify", body.model)
        texts = [text for (text,) in rows]
        names = {f"inputs[{i}]": field for i, (field,) in enumerate(fields)}
        with inference.called(names):
            result = await service.classify(texts, model=card.name, truncate=truncate, raw=raw)
    inference.done(request, result)
    ranked = [answers.ranked(row, card.labels) for row in result.value]
    return answers.json(ranked if isinstance(body.inputs, Batch) else ranked[0])
