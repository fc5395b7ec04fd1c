"""Trees that clients send instead of texts, in two shapes. They are used without parsing.

A body's validation, which happens in a thread if the body is large, makes a parse of each.
`/explain` answers in the same two shapes.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, Tag

from heedful.app.schemas.base import FIRST_ERROR, StrictModel, Text, by_shape
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


def _from_displacy(tree: Displacy) -> Parse:
    """Raises ValueError."""
    for i, arc in enumerate(tree.arcs):
        if _WHITE_SPACE.search(arc.label):
            raise ValueError(f"arcs[{i}].label holds white space, which CoNLL-U cannot hold")
    return trees.from_displacy(tree.model_dump())


class Tree(StrictModel):
    @property
    def parse(self) -> Parse:
        """The value of the only field."""
        (parse,) = vars(self).values()
        assert isinstance(parse, Parse)
        return parse


class DisplacyTree(Tree):
    displacy: Annotated[Displacy, AfterValidator(_from_displacy)]


class ConlluTree(Tree):
    conllu: Annotated[
        str,
        Field(min_length=1, description="ID, FORM, HEAD, DEPREL and SpaceAfter=No are used."),
        AfterValidator(trees.from_conllu),
    ]


class Trees(BaseModel):
    """One tree in both shapes."""

    displacy: Displacy
    conllu: str


TextOrTree = str | Tree

TaggedTextOrTree = (
    Annotated[Text, Tag("<text>")]
    | Annotated[DisplacyTree, Tag("<displacy>")]
    | Annotated[ConlluTree, Tag("<conllu>")]
)
Item = Annotated[
    TaggedTextOrTree,
    by_shape(
        'must be a string, or a tree: {"displacy": {..}} or {"conllu": ".."}', "displacy", "conllu"
    ),
]


def read_inputs(inputs: TextOrTree | Sequence[TextOrTree], path: str = "inputs") -> Inputs:
    """The inputs in the field `path`: a text or tree, or a list of them."""
    if isinstance(inputs, str):
        return Inputs([inputs], [path], path)
    if isinstance(inputs, Tree):
        return read([inputs], [path], path)
    return read(inputs, [f"{path}[{i}]" for i in range(len(inputs))], path)


def read(
    items: Sequence[TextOrTree], paths: Sequence[str], path: str = "inputs", texts_per_row: int = 1
) -> Inputs:
    """Texts, and trees as parses."""
    inputs = [item if isinstance(item, str) else item.parse for item in items]
    return Inputs(inputs, paths, path, texts_per_row)
