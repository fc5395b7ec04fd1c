"""Strict objects, texts and short lists of errors: what every request body is made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, FailFast, Field, model_validator
from pydantic_core import PydanticCustomError

MAX_FIELDS = 256
"""More than any object of a request has: what is wrong with each is not worth finding."""


class _FirstError(FailFast):
    """Hashable, as what annotates a part of a union must be."""

    __hash__ = object.__hash__


FIRST_ERROR = _FirstError()
"""For every list in a request: one wrong item is enough, and what describes millions takes gigabytes."""

Text = Annotated[str, Field(json_schema_extra={"minLength": 1})]
"""A text to be read. `runtime.inputs` refuses empty ones, as it does blank ones: this only says so in the document."""
NOT_EMPTY = Field(json_schema_extra={"minItems": 1})
"""For a list of inputs, as `Text`."""


def few_fields(value: object) -> object:
    """For pydantic, before it describes what is wrong with each of millions."""
    if isinstance(value, dict) and len(value) > MAX_FIELDS:
        raise PydanticCustomError("fields", f"holds {len(value)} fields")
    return value


class StrictModel(BaseModel):
    """Strict: no type is coerced, and unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _object_of_few_fields(cls, value: object) -> object:
        # pydantic's message has the name of a class of ours.
        if not isinstance(value, (dict, cls)):
            needed = ", ".join(
                name for name, field in cls.model_fields.items() if field.is_required()
            )
            message = f"must be an object with {needed}" if needed else "must be an object"
            raise PydanticCustomError("object_type", message)
        return few_fields(value)
