"""Trees that clients send instead of texts, in two shapes. They are used without parsing.

`/explain` answers in the same two shapes.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field, PrivateAttr, Tag

from heedful.app.schemas.base import FIRST_ERROR, StrictModel, Text, by_shape
from heedful.runtime.errors import BadInput
from heedful.runtime.inputs import Inputs
from heedful.text import trees
from heedful.text.parse import Parse

MAX_TREE_WORDS = 10_000
_WHITE_SPACE = re.compile(r"\s")


class Word(StrictModel):
    text: str = Field(min_length=1, description="A token; it holds no white space.")
    tag: str = Field("", description="displaCy's line under the word; ignored.")


class Arc(StrictModel):
    """An arc between two tokens, `start` on the left. A token that no arc points to is a root."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    label: str = Field(description="The relation.")
    dir: Literal["left", "right"] = Field(
        description="Where the arrow points: left if `end` governs `start`, right if `start` governs `end`."
    )


class Displacy(StrictModel):
    """The input of `displacy.render(.., manual=True)`."""

    words: Annotated[list[Word], FIRST_ERROR] = Field(min_length=1, max_length=MAX_TREE_WORDS)
    arcs: Annotated[list[Arc], FIRST_ERROR] = Field(max_length=MAX_TREE_WORDS)


class Tree(StrictModel):
    """Read when the body is validated, which happens in a thread if the body is large."""

    _result: Parse | ValueError = PrivateAttr()

    def model_post_init(self, _: object) -> None:
        try:
            self._result = self._parse()
        except ValueError as error:
            self._result = error

    def _parse(self) -> Parse:
        """Raises ValueError where the fields are no tree."""
        raise NotImplementedError

    def parse(self) -> Parse:
        """Raises ValueError where the fields are no tree."""
        if isinstance(self._result, ValueError):
            raise self._result
        return self._result


class DisplacyTree(Tree):
    displacy: Displacy

    def _parse(self) -> Parse:
        for i, arc in enumerate(self.displacy.arcs):
            if _WHITE_SPACE.search(arc.label):
                raise ValueError(f"arcs[{i}].label holds white space, which CoNLL-U cannot hold")
        return trees.from_displacy(self.displacy.model_dump())


class ConlluTree(Tree):
    conllu: str = Field(
        min_length=1, description="ID, FORM, HEAD, DEPREL and SpaceAfter=No are used."
    )

    def _parse(self) -> Parse:
        return trees.from_conllu(self.conllu)


class Trees(BaseModel):
    """One tree in both shapes."""

    displacy: Displacy
    conllu: str


TextOrTree = str | DisplacyTree | ConlluTree

Item = Annotated[
    Annotated[Text, Tag("<text>")]
    | Annotated[DisplacyTree, Tag("<displacy>")]
    | Annotated[ConlluTree, Tag("<conllu>")],
    by_shape(
        'must be a string, or a tree: {"displacy": {..}} or {"conllu": ".."}', "displacy", "conllu"
    ),
]


def read_inputs(inputs: TextOrTree | Sequence[TextOrTree], path: str = "inputs") -> Inputs:
    """The inputs in the field `path`: a text or tree, or a list of them. Raises BadInput."""
    if isinstance(inputs, str):
        return Inputs([inputs], [path], path)
    if isinstance(inputs, TextOrTree):
        return read([inputs], [path], path)
    return read(inputs, [f"{path}[{i}]" for i in range(len(inputs))], path)


def read(
    items: Sequence[TextOrTree], paths: Sequence[str], path: str = "inputs", texts_per_row: int = 1
) -> Inputs:
    """Texts, and trees as parses. Raises BadInput, which names the tree's field."""
    inputs = [_read(item, item_path) for item, item_path in zip(items, paths, strict=True)]
    return Inputs(inputs, paths, path, texts_per_row)


def _read(item: TextOrTree, path: str) -> str | Parse:
    if isinstance(item, str):
        return item
    try:
        return item.parse()
    except ValueError as error:
        (field,) = type(item).model_fields
        raise BadInput(f"{path}.{field}: {error}", param=f"{path}.{field}") from error
