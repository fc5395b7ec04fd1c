"""The parts of request bodies: strict objects, texts, short lists of errors, fields that are refused or ignored."""

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
"""Above this many fields an object is refused without a check of each. No schema has as many."""
IGNORE_UNKNOWN = ConfigDict(extra="allow")
"""For a request's schema: the header X-Ignored-Fields names unknown fields, which change nothing."""
MAX_NAMES, MAX_LENGTH = 20, 64
"""Limits of the header: names in it, and characters of a name."""
MAX_ITEMS = 20
"""Objects of a list in which ignored fields are sought: a request may hold thousands."""


class _FirstError(FailFast):
    """Hashable, as annotations of a union's parts must be."""

    __hash__ = object.__hash__


FIRST_ERROR = _FirstError()
"""For each list in a request: a single error is enough, and the errors of millions of items take gigabytes."""

Text = Annotated[str, Field(json_schema_extra={"minLength": 1})]
"""An input. `runtime.inputs` refuses empty and blank texts: the schema only says so in the OpenAPI document."""
NOT_EMPTY = Field(json_schema_extra={"minItems": 1})
"""For a list of inputs. As with `Text`, only the OpenAPI document has it."""


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


class OpenModel(StrictModel):
    """Ignores unknown fields, as IGNORE_UNKNOWN says."""

    model_config = IGNORE_UNKNOWN


class AnyOf:
    """Annotates a union of which a body may fit two parts: anyOf in the OpenAPI document, not oneOf."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        document = handler(schema)
        document["anyOf"] = document.pop("oneOf")
        return document


def by_shape(message: str, *keys: str, many: bool = False) -> Discriminator:
    """Chooses a union's part: "<text>" for a string, "<key>" for an object, by the first of `keys` that it has.

    With `many`, "<many>" for a list. `message` is the error for other values.
    """

    def tag(value: object) -> str | None:
        if isinstance(value, str):
            return "<text>"
        if isinstance(value, list):
            return "<many>" if many else None
        fields: Iterable[str] = value if isinstance(value, dict) else getattr(value, "__dict__", ())
        return next((f"<{key}>" for key in keys if key in fields), None)

    return by_tag(tag, message)


def by_tag(tag: Callable[[object], str | None], message: str) -> Discriminator:
    """Chooses a union's part by its tag, which looks like "<this>". `message` is the error for values without a tag."""
    return Discriminator(tag, custom_error_type="texts_type", custom_error_message=message)


def unsupported(message: str) -> PydanticCustomError:
    """The error for a known field whose value no model here supports."""
    return PydanticCustomError("unsupported", "{reason}", {"reason": message})


def refused(reason: str) -> BeforeValidator:
    """For a field of type None: refuses each other value."""

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
    """Whether the item is an object that may have unknown fields, and no answer repeats them."""
    is_open = isinstance(item, BaseModel) and item.model_extra is not None
    return is_open and not getattr(item, "is_repeated", False)


def header_of(names: list[str]) -> str:
    """The names as a header's value, in ASCII: other characters are percent-encoded."""
    return ", ".join(
        quote(name[:MAX_LENGTH].encode("utf-8", "replace"), safe=".-_~ []")
        for name in names[:MAX_NAMES]
    )
