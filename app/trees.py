"""A tree that a client gives in the place of a text: it is read as it is, and nothing is parsed.

The two shapes are those in which `/explain` answers.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from runtime.errors import BadInput
from text import trees
from text.parse import Parse


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Word(_Shape):
    text: str = Field(min_length=1, description="A token; it holds no white space.")
    tag: str = Field("", description="displaCy's line under the word; not read.")


class Arc(_Shape):
    """An arc between two tokens, `start` the one to the left. A token that none points to is a root."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    label: str = Field(description="The relation.")
    dir: Literal["left", "right"] = Field(
        description="Where the arrow points: left, `start` hangs under `end`; right, the reverse."
    )


class Displacy(_Shape):
    """What `displacy.render(.., manual=True)` draws."""

    words: list[Word] = Field(min_length=1)
    arcs: list[Arc]


class DisplacyTree(_Shape):
    displacy: Displacy

    def parse(self) -> Parse:
        return trees.from_displacy(self.displacy.model_dump())


class ConlluTree(_Shape):
    conllu: str = Field(
        min_length=1, description="ID, FORM, HEAD, DEPREL and SpaceAfter=No are read."
    )

    def parse(self) -> Parse:
        return trees.from_conllu(self.conllu)


class Trees(BaseModel):
    """Of an answer: one tree twice."""

    displacy: Displacy
    conllu: str


def _shape(value: object) -> str | None:
    if isinstance(value, str):
        return "<text>"
    for name, kind in (("displacy", DisplacyTree), ("conllu", ConlluTree)):
        if isinstance(value, kind) or (isinstance(value, dict) and name in value):
            return f"<{name}>"
    return None


Item = Annotated[
    Annotated[str, Tag("<text>")]
    | Annotated[DisplacyTree, Tag("<displacy>")]
    | Annotated[ConlluTree, Tag("<conllu>")],
    Discriminator(
        _shape,
        custom_error_type="item_type",
        custom_error_message='must be a string, or a tree: {"displacy": {..}} or {"conllu": ".."}',
    ),
]


def read(item: Any, param: str) -> str | Parse:
    """A text as it is, a tree as a parse. Raises BadInput, which names the tree's field."""
    if isinstance(item, str):
        return item
    try:
        parse: Parse = item.parse()
    except ValueError as error:
        shape = next(iter(type(item).model_fields))
        raise BadInput(f"{param}.{shape}: {error}", param=f"{param}.{shape}") from error
    return parse
