"""A request's inputs: texts or trees that know their place in the request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from heedful.runtime.errors import BadInput, TooManyInputs
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.parse import Parse
from heedful.text.tokenize import MAX_CHUNK, TextTokenizer

COUNT_FACTOR = 10
"""The tokens of a text that is too long are counted up to this many times the limit."""

Item = str | Parse
"""A text, or a tree that is used in its place without parsing."""


@dataclass(slots=True)
class Inputs:
    """Rows of one text or of two, flattened: `paths[i]` is the path of `items[i]` in the request.

    Error messages name it, for example "pairs[1].premise".
    """

    items: Sequence[Item]
    paths: Sequence[str]
    path: str = "inputs"  # of the list of rows
    texts_per_row: int = 1
    remedy: str = "set truncate to true"
    """How the caller has long texts cut."""

    @classmethod
    def from_texts(cls, texts: Sequence[Item], path: str = "inputs") -> Self:
        return cls(texts, [f"{path}[{i}]" for i in range(len(texts))], path)

    @classmethod
    def from_pairs(cls, pairs: Sequence[tuple[Item, Item]], sides: tuple[str, str]) -> Self:
        paths = [f"pairs[{i}].{side}" for i in range(len(pairs)) for side in sides]
        return cls([item for pair in pairs for item in pair], paths, "pairs", texts_per_row=2)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.items) // self.texts_per_row

    def count_rows(self, limit: int) -> int:
        """The number of rows. Raises BadInput for none, TooManyInputs for more than `limit`."""
        rows = len(self.items) // self.texts_per_row
        if not rows:
            raise BadInput(f"{self.path} is empty: send at least one", param=self.path)
        if rows > limit:
            message = f"{self.path} holds {rows}, more than {limit}: send several requests"
            raise TooManyInputs(message, param=self.path)
        return rows

    def check_texts(self) -> None:
        """Raise BadInput for a text that is blank, or holds a NUL or half of a surrogate pair."""
        for item, path in zip(self.items, self.paths, strict=True):
            text = item if isinstance(item, str) else item.text
            if not text or text.isspace():
                raise BadInput(f"{path} is blank: send a text", param=path)
            if "\0" in text:
                raise BadInput(f"{path} holds a NUL character: remove it", param=path)
            if text.isascii():
                continue
            try:
                text.encode()
            except UnicodeEncodeError as error:
                message = f"{path} holds half of a surrogate pair: send valid Unicode"
                raise BadInput(message, param=path) from error

    def check_are_texts(self, rows: Sequence[int]) -> None:
        """Raise BadInput if one of these rows is a tree: a tree has no windows."""
        for path in [self.paths[row] for row in rows if not isinstance(self.items[row], str)]:
            raise BadInput(
                f"{path} is a tree and longer than the model reads: shorten it, send it as text, "
                f"or {self.remedy}",
                param=path,
                code="input_too_long",
            )

    def check_parses(
        self, parses: Sequence[Parse], model: LoadedModel, tokenizer: TextTokenizer, truncate: bool
    ) -> None:
        """Raise BadInput for a text that was cut without `truncate`, with its length, or that holds no token."""
        card, max_pieces = model.card, model.vocab.limit
        for item, parse, path in zip(self.items, parses, self.paths, strict=True):
            if parse.cut and not truncate:
                pieces = f"{max_pieces} word pieces, " if max_pieces else ""
                length = (
                    _length(item, card.max_tokens, tokenizer)
                    or f"more than {max_pieces} word pieces"
                )
                raise BadInput(
                    f"{path} has {length} and is longer than {card.name} reads "
                    f"({card.max_tokens} tokens, {pieces}and {MAX_CHUNK} characters without white space): "
                    f"shorten it, or {self.remedy}",
                    param=path,
                    code="input_too_long",
                )
            if not parse.tokens:
                raise BadInput(f"{path} holds no token: send a text", param=path)


def _length(item: Item, limit: int, tokenizer: TextTokenizer) -> str:
    """The length of an input above `limit` tokens, for a message; "" where its word pieces are too many."""
    tokens = tokenizer.tokenize(item, COUNT_FACTOR * limit) if isinstance(item, str) else item
    if len(tokens) > limit:
        return f"{'more than ' if tokens.cut else ''}{len(tokens)} tokens"
    return f"more than {MAX_CHUNK} characters without white space" if tokens.cut else ""
