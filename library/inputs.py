"""Arguments of the library's methods -> `Inputs`: texts or pairs of texts, checked, in chunks of similar length."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np
from spacy.tokens import Doc

from heedful.runtime.errors import BadInput
from heedful.runtime.inputs import Inputs, Item
from heedful.text.parse import Parse

CHUNK = 1024
"""Rows that are answered together: sorted by length they make full batches."""

T = TypeVar("T")
Text = str | Doc
"""spaCy's documents are read with their tree."""
Pair = tuple[Text, Text] | Sequence[Text] | Mapping[str, Text]
Pairs = Iterable[Pair]


def text_inputs(texts: Iterable[Text], path: str, *, missing_is_blank: bool = False) -> Inputs:
    """The inputs of a list, array or column of texts. Raises BadInput for other values."""
    shape = getattr(texts, "shape", (0,))
    if len(shape) != 1:  # iterating over a table gives its columns' names
        remedy = "give one text a row, for example a column"
        raise BadInput(f"{path} has the shape {tuple(shape)}: {remedy}", param=path)
    rows = _rows(texts, path, "strings")
    if missing_is_blank:
        rows = ["" if is_missing(text) else text for text in rows]
    return strings(Inputs.from_texts(cast(list[Any], rows), path))


def pair_inputs(pairs: Pairs, sides: tuple[str, str]) -> Inputs:
    """The inputs of a list of pairs of texts. Raises BadInput for other values."""
    rows = _rows(pairs, "pairs", "pairs of strings")
    if rows and isinstance(rows[0], str):
        if len(getattr(pairs, "shape", ())) > 1:  # iterating over a table gives its columns' names
            reason = (
                f"pairs is a table: give its rows, for example df[{list(sides)}].to_dict('records')"
            )
        else:
            reason = f"pairs[0] is a string: give a list of pairs, [({', '.join(sides)})]"
        raise BadInput(reason, param="pairs")
    checked = [_pair(pair, f"pairs[{i}]", sides) for i, pair in enumerate(rows)]
    return strings(Inputs.from_pairs(checked, sides))


def _pair(pair: Pair, path: str, sides: tuple[str, str]) -> tuple[Any, Any]:
    """The two values of a tuple, or of a mapping with the keys `sides`. Raises BadInput for another pair."""
    if isinstance(pair, Mapping) and set(pair) == set(sides):
        return pair[sides[0]], pair[sides[1]]
    if isinstance(pair, np.ndarray):
        pair = pair.tolist()
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return pair[0], pair[1]
    keys = " and ".join(sides)
    reason = f"{path} is no pair: give two strings in a tuple, or a dictionary with only {keys}"
    raise BadInput(reason, param=path)


def _rows(rows: Iterable[T], path: str, expected: str) -> list[T]:
    """The rows as a list of Python's values. Raises BadInput for a string or another value that is no list of rows."""
    if isinstance(rows, str | bytes):
        kind = "one string" if isinstance(rows, str) else "bytes"
        raise BadInput(f"{path} is {kind}: give a list of {expected}", param=path)
    # The items of a mapping are no rows, and those of a set have no order.
    if isinstance(rows, Mapping | set | frozenset) or not isinstance(rows, Iterable):
        raise BadInput(f"{path} is {type(rows).__name__}: give a list of {expected}", param=path)
    # Of Arrow's arrays, whose scalars are no strings.
    to_pylist: Callable[[], list[T]] | None = getattr(rows, "to_pylist", None)
    return to_pylist() if to_pylist else list(rows)


def is_missing(value: Any) -> bool:
    """Whether the value is None, NaN, or pandas' NA or NaT."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA is neither equal to itself nor not
        return True
    except ValueError:  # an array
        return False


def is_count(value: object) -> bool:
    """Whether the value is a whole number from 1, of Python or numpy."""
    return isinstance(value, Integral) and int(value) >= 1


def check_batch_size(batch_size: object) -> None:
    """Raise BadInput unless the value is None or a whole number from 1."""
    if batch_size is not None and not is_count(batch_size):
        reason = f"batch_size is {batch_size!r}: give a whole number from 1"
        raise BadInput(reason, param="batch_size")


def strings(inputs: Inputs) -> Inputs:
    """The inputs with Python's strings in place of numpy's, and parses of documents. Raises BadInput for others."""
    items: list[Item] = []
    for item, path in zip(cast(Sequence[Any], inputs.items), inputs.paths, strict=True):
        if isinstance(item, Doc):
            items.append(Parse.of(item) if item.has_annotation("DEP") else item.text)
        elif isinstance(item, str):
            items.append(str(item))
        else:
            kind = "a missing value" if is_missing(item) else type(item).__name__
            raise BadInput(f"{path} is {kind}: give a string", param=path)
    return replace(inputs, items=items, remedy="set truncate=True")


def text_of(item: Item) -> str:
    return item if isinstance(item, str) else item.text


def is_text(text: Item) -> bool:
    try:
        Inputs.from_texts([text]).check_texts()
    except BadInput:
        return False
    return True


def in_chunks(inputs: Inputs) -> Iterator[tuple[list[int], Inputs]]:
    """Chunks of rows of similar length, the longest first, each with the numbers of its rows."""
    step = inputs.texts_per_row
    lengths = [
        sum(len(text_of(item)) for item in inputs.items[row * step : (row + 1) * step])
        for row in range(len(inputs))
    ]
    order = list(range(len(inputs)))
    if len(order) > CHUNK:
        order.sort(key=lengths.__getitem__, reverse=True)
    for begin in range(0, len(order), CHUNK):
        rows = order[begin : begin + CHUNK]
        places = [row * step + side for row in rows for side in range(step)]
        items = [inputs.items[place] for place in places]
        paths = [inputs.paths[place] for place in places]
        yield rows, replace(inputs, items=items, paths=paths)
