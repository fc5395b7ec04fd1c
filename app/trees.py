"""A tree that a client gives in the place of a text: it is read as it is, and nothing is parsed.

The two shapes are those in which `/explain` answers.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from heedful.runtime.errors import BadInput
from heedful.text import trees
from heedful.text.parse import Parse


class _Closed(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Word(_Closed):
    text: str = Field(min_length=1, description="A token; it holds no white space.")
    tag: str = Field("", description="displaCy's line under the word; not read.")


class Arc(_Closed):
    """An arc between two tokens, `start` the one to the left. A token that none points to is a root."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    label: str = Field(description="The relation.")
    dir: Literal["left", "right"] = Field(
        description="Where the arrow points: left, `start` hangs under `end`; right, the reverse."
    )


class Displacy(_Closed):
    """What `displacy.render(.., manual=True)` draws."""

    words: list[Word] = Field(min_length=1)
    arcs: list[Arc]


class DisplacyTree(_Closed):
    displacy: Displacy

    def parse(self) -> Parse:
        return trees.from_displacy(self.displacy.model_dump())


class ConlluTree(_Closed):
    conllu: str = Field(
        min_length=1, description="ID, FORM, HEAD, DEPREL and SpaceAfter=No are read."
    )

    def parse(self) -> Parse:
        return trees.from_conllu(self.conllu)


class Trees(BaseModel):
    """Of an answer: one tree twice."""

    displacy: Displacy
    conllu: str


Given = str | DisplacyTree | ConlluTree


def shape(value: object) -> str | None:
    """The tag of the text or tree that it looks like."""
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
        shape,
        custom_error_type="item_type",
        custom_error_message='must be a string, or a tree: {"displacy": {..}} or {"conllu": ".."}',
    ),
]


def read(item: Given, param: str) -> str | Parse:
    """A text as it is, a tree as a parse. Raises BadInput, which names the tree's field."""
    if isinstance(item, str):
        return item
    try:
        return item.parse()
    except ValueError as error:
        (field,) = type(item).model_fields
        raise BadInput(f"{param}.{field}: {error}", param=f"{param}.{field}") from error
