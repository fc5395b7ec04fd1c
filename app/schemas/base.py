"""The parts of request bodies: strict objects, texts, short lists of errors, fields that are refused or ignored."""

import itertools
from collections.abc import Callable
from typing import Annotated, TypeVar
from urllib.parse import quote

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

MAX_FIELDS = 256
"""Above this many fields an object is refused without a check of each. No schema has as many."""
MAX_NAMES, MAX_LENGTH = 20, 64
"""Limits of the header: names in it, and characters of a name."""
MAX_ITEMS = 20
"""Objects of a list in which ignored fields are sought: a request may hold thousands."""


FIRST_ERROR = Field(fail_fast=True)
"""For each list in a request: a single error is enough, and the errors of millions of items take gigabytes."""

Text = Annotated[str, Field(json_schema_extra={"minLength": 1})]
"""An input. `runtime.inputs` refuses empty and blank texts: the schema only says so in the OpenAPI document."""
T = TypeVar("T")
FullList = Annotated[list[T], FIRST_ERROR, Field(json_schema_extra={"minItems": 1})]
"""A list that, as with `Text`, only the OpenAPI document says not to be empty."""


def _not_too_many(value: object, info: ValidationInfo) -> object:
    """Refuse a list of more inputs than a request may have, the validation's context, before any of them is checked."""
    if info.context is not None and isinstance(value, list) and len(value) > info.context:
        counts = {"count": len(value), "limit": info.context}
        message = "holds {count}, more than {limit}: send several requests"
        raise PydanticCustomError("too_many_inputs", message, counts)
    return value


InputList = Annotated[FullList[T], BeforeValidator(_not_too_many)]


class StrictModel(BaseModel):
    """An object whose fields are not coerced, and which has no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _limit_fields(cls, value: object) -> object:
        # pydantic's message would name this class.
        if not isinstance(value, (dict, cls)):
            required = ", ".join(
                name for name, field in cls.model_fields.items() if field.is_required()
            )
            message = f"must be an object with {required}" if required else "must be an object"
            raise PydanticCustomError("object_type", message)
        # pydantic would describe an error for each of millions of fields.
        if isinstance(value, dict) and len(value) > MAX_FIELDS:
            raise PydanticCustomError("fields", f"holds {len(value)} fields")
        return value

    def ignored(self, path: str = "") -> list[str]:
        """The names of the fields that are ignored: "parameters.x" in an object, "inputs[].x" in a list of them."""
        names = [path + name for name in self.model_extra or ()]
        for name, value in vars(self).items():
            if isinstance(value, StrictModel):
                names += value.ignored(f"{path}{name}.")
            elif isinstance(value, list):
                items = [item for item in value[:MAX_ITEMS] if isinstance(item, StrictModel)]
                inner = [item.ignored(f"{path}{name}[].") for item in items]
                names += dict.fromkeys(itertools.chain.from_iterable(inner))
        return names


class OpenModel(StrictModel):
    """Unknown fields change nothing: the header X-Ignored-Fields names them. The last of a class's bases."""

    model_config = ConfigDict(extra="allow")


ANY_OF = Field(json_schema_extra=lambda schema: schema.update(anyOf=schema.pop("oneOf")))
"""For a union of which a body may fit two parts: anyOf in the OpenAPI document, not oneOf."""


def by_shape(message: str, *keys: str) -> Discriminator:
    """Chooses a union's part: "<text>" for a string, "<many>" for a list, "<key>" for an object with this key.

    The first of `keys` that it has counts; without any it is an "<object>". `message` is the error for values whose
    part the union does not have.
    """

    def tag(value: object) -> str | None:
        if isinstance(value, str):
            return "<text>"
        if isinstance(value, list):
            return "<many>"
        if not isinstance(value, dict):
            return None
        return next((f"<{key}>" for key in keys if key in value), "<object>")

    return by_tag(tag, message)


def by_tag(tag: Callable[[object], str | None], message: str) -> Discriminator:
    """Chooses a union's part by its tag, which looks like "<this>". `message` is the error for values without a tag."""
    return Discriminator(tag, custom_error_type="texts_type", custom_error_message=message)


def unsupported(message: str) -> PydanticCustomError:
    """The error for a known field whose value no model here supports."""
    return PydanticCustomError("unsupported", "{reason}", {"reason": message})


def refused(reason: str, *allowed: object) -> BeforeValidator:
    """For a field that no model here supports: refuses each value but null and those that are `allowed`."""

    def check(value: object) -> object:
        if value not in (None, *allowed):
            raise unsupported(reason)
        return value

    return BeforeValidator(check)


def header_of(names: list[str]) -> str:
    """The names as a header's value, in ASCII: other characters are percent-encoded."""
    return ", ".join(
        quote(name[:MAX_LENGTH].encode("utf-8", "replace"), safe=".-_~ []")
        for name in names[:MAX_NAMES]
    )
