"""What every request body is made of: strict objects, texts, short lists of errors, fields that are not honoured."""

import itertools
from collections.abc import Callable, Iterable
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

MAX_FIELDS = 256
"""More than any object of a request has: what is wrong with each is not worth finding."""
IGNORE_UNKNOWN = ConfigDict(extra="allow")
"""For a request's schema: unknown fields are named in the header X-Ignored-Fields, and change nothing."""
MAX_NAMES, MAX_LENGTH = 20, 64
"""Limits of the header, whose names are the client's."""
MAX_ITEMS = 20
"""How many of a list's objects are looked into: a request may hold thousands."""


class _FirstError(FailFast):
    """Hashable, as what annotates a part of a union must be."""

    __hash__ = object.__hash__


FIRST_ERROR = _FirstError()
"""For every list in a request: one wrong item is enough, and what describes millions takes gigabytes."""

Text = Annotated[str, Field(json_schema_extra={"minLength": 1})]
"""A text to be read. `runtime.inputs` refuses empty ones, as it does blank ones: this only says so in the document."""
NOT_EMPTY = Field(json_schema_extra={"minItems": 1})
"""For a list of inputs, as `Text`."""


class StrictModel(BaseModel):
    """Strict: no type is coerced, and unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _limit_fields(cls, value: object) -> object:
        # pydantic's message has the name of a class of ours.
        if not isinstance(value, (dict, cls)):
            needed = ", ".join(
                name for name, field in cls.model_fields.items() if field.is_required()
            )
            message = f"must be an object with {needed}" if needed else "must be an object"
            raise PydanticCustomError("object_type", message)
        # Before pydantic describes what is wrong with each of millions.
        if isinstance(value, dict) and len(value) > MAX_FIELDS:
            raise PydanticCustomError("fields", f"holds {len(value)} fields")
        return value


class OpenModel(StrictModel):
    """Takes unknown fields too, as IGNORE_UNKNOWN says."""

    model_config = IGNORE_UNKNOWN


class AnyOf:
    """Annotates a union of which a body may fit two parts: the document may not say oneOf."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        written = handler(schema)
        written["anyOf"] = written.pop("oneOf")
        return written


def by_shape(message: str, *keys: str, many: bool = False) -> Discriminator:
    """Tells the parts of a union apart: a string is tagged "<text>", an object "<key>" by the first of `keys` it has.

    With `many` a list is "<many>". `message` says what anything else must be.
    """

    def tag(value: object) -> str | None:
        if isinstance(value, str):
            return "<text>"
        if isinstance(value, list):
            return "<many>" if many else None
        fields: Iterable[str] = value if isinstance(value, dict) else getattr(value, "__dict__", ())
        return next((f"<{key}>" for key in keys if key in fields), None)

    return told_apart(tag, message)


def told_apart(tag: Callable[[object], str | None], message: str) -> Discriminator:
    """Tells the parts of a union apart by a tag, which looks like "<this>"; `message` is for values without any."""
    return Discriminator(tag, custom_error_type="texts_type", custom_error_message=message)


def unsupported(message: str) -> PydanticCustomError:
    """A known field that asks for something no model here supports."""
    return PydanticCustomError("unsupported", "{reason}", {"reason": message})


def refused(reason: str) -> BeforeValidator:
    """For a field of type None: every other value is refused."""

    def check(value: object) -> None:
        if value is not None:
            raise unsupported(reason)

    return BeforeValidator(check)


def ignored(body: object, path: str = "") -> list[str]:
    """The names of the fields that were ignored: "parameters.x" in an object, "documents[].x" in a list of them."""
    if not isinstance(body, BaseModel):
        return []
    names: list[str] = []
    for name in body.model_extra or ():
        names.append(path + name)
    sent = body.model_fields_set
    for name, value in vars(body).items():
        if name not in sent:
            continue
        if isinstance(value, BaseModel):
            names += ignored(value, f"{path}{name}.")
        elif isinstance(value, list):
            items = (item for item in value[:MAX_ITEMS] if _is_open(item))
            inner = (ignored(item, f"{path}{name}[].") for item in items)
            names += dict.fromkeys(itertools.chain.from_iterable(inner))
    return names


def _is_open(item: object) -> bool:
    """Whether it is an object that may have fields which its schema does not know, and its answer does not hold."""
    is_open = isinstance(item, BaseModel) and item.model_extra is not None
    return is_open and not getattr(item, "given_back", False)


def header_of(names: list[str]) -> str:
    """The names as a header's value, in ASCII: other characters are percent-encoded."""
    shown = [
        quote(name[:MAX_LENGTH].encode("utf-8", "replace"), safe=".-_~ []")
        for name in names[:MAX_NAMES]
    ]
    return ", ".join(shown)
