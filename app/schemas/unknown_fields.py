"""Fields that are not honoured: those that a schema does not know are ignored and named, others are refused."""

import itertools
from urllib.parse import quote

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

PASS_OVER = ConfigDict(extra="allow")
"""For a request's schema: unknown fields are named in the header X-Ignored-Fields, and change nothing."""
MAX_NAMES, MAX_LENGTH = 20, 64
"""Limits of the header, whose names are the client's."""
MAX_ITEMS = 20
"""How many of a list's objects are looked into: a request may hold thousands."""


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
    names = [path + name for name in body.model_extra or ()]
    sent = body.model_fields_set
    for name, value in vars(body).items():
        if name not in sent:
            continue
        if isinstance(value, BaseModel):
            names += ignored(value, f"{path}{name}.")
        elif isinstance(value, list):
            open_ones = (one for one in value[:MAX_ITEMS] if _is_open(one))
            found = (ignored(one, f"{path}{name}[].") for one in open_ones)
            names += dict.fromkeys(itertools.chain.from_iterable(found))
    return names


def _is_open(item: object) -> bool:
    """Whether it is an object that may have fields which its schema does not know."""
    return isinstance(item, BaseModel) and item.model_extra is not None


def header(names: list[str]) -> str:
    """The names as a header's value, in ASCII: other characters are percent-encoded."""
    shown = [
        quote(name[:MAX_LENGTH].encode("utf-8", "replace"), safe=".-_~ []")
        for name in names[:MAX_NAMES]
    ]
    return ", ".join(shown)
