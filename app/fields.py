"""Fields that are not honoured: those that a schema does not know are ignored and named, others are refused."""

from urllib.parse import quote

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

PASS_OVER = ConfigDict(extra="allow")
"""For a request's schema: unknown fields are named in the header X-Ignored-Fields, and change nothing."""
MAX_NAMES, MAX_LENGTH = 20, 64
"""Limits of the header, whose names are the client's."""


def unsupported(message: str) -> PydanticCustomError:
    """A known field that asks for something no model here supports."""
    return PydanticCustomError("unsupported", "{reason}", {"reason": message})


def ignored(body: object, path: str = "") -> list[str]:
    """The names of the fields that were ignored; "parameters.x" in an object."""
    if not isinstance(body, BaseModel):
        return []
    names = [path + name for name in body.model_extra or ()]
    for name, value in vars(body).items():
        if isinstance(value, BaseModel):
            names += ignored(value, f"{path}{name}.")
    return names


def header(names: list[str]) -> str:
    """The names as a header's value, in ASCII."""
    shown = [
        quote(name[:MAX_LENGTH].encode("utf-8", "replace"), safe=".-_~ ")
        for name in names[:MAX_NAMES]
    ]
    return ", ".join(shown)
