"""Bodies that would hold the event loop: counts come before contents, and large ones are read in a thread.

orjson keeps the interpreter's lock while it parses, in a thread too: 16 MiB still stop the event loop for up to 0.6 s.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from heedful.runtime.errors import TooManyInputs
from heedful.runtime.memory import gc_paused

LARGE_BYTES = 64 * 1024
"""A smaller body takes a few milliseconds at most."""
NO_INPUTS = frozenset({"displacy"})
"""Fields whose lists are not inputs of the request."""
INPUTS = frozenset({"documents", "input", "inputs", "pairs", "sentences", "texts"})
"""Fields whose lists are. Other lists belong to no route, or are wrong there."""

T = TypeVar("T")


class LargeBodies:
    """One thread for all: more would leave the event loop a smaller share of the interpreter's lock."""

    def __init__(self, trim_later: Callable[[], None]) -> None:
        """`trim_later` is called after each large body, which has used memory even if it is refused."""
        self._thread = ThreadPoolExecutor(1, "bodies")
        self._trim_later = trim_later

    async def call(self, size: int, function: Callable[..., T], *arguments: Any) -> T:
        """Call the function, in the thread if it reads a large body. Raises whatever it raises."""
        if size <= LARGE_BYTES:
            return function(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._call, function, *arguments)

    def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        try:
            with gc_paused():
                return function(*arguments)
        finally:
            self._trim_later()


def check_counts(value: object, max_inputs: int) -> None:
    """Raise TooManyInputs for a longer list in the body, before anything in it is looked at."""
    if isinstance(value, dict) and (found := _too_long(value, max_inputs)):
        path, items = found
        param = ".".join(path)
        if path[-1] in INPUTS:
            check_length(items, max_inputs, param)
        held = f"{param} holds {len(items)}, more than the {max_inputs} of any field"
        raise TooManyInputs(f"{held}: leave it out", param=param)


def check_length(items: Sequence[object], max_inputs: int, path: str) -> None:
    """Raise TooManyInputs if the field `path` holds more."""
    if len(items) > max_inputs:
        message = f"{path} holds {len(items)}, more than {max_inputs}: send several requests"
        raise TooManyInputs(message, param=path)


def _too_long(
    value: dict[str, object], max_inputs: int
) -> tuple[tuple[str, ...], list[object]] | None:
    """The first list of more than `max_inputs`, with the names of the fields that lead to it."""
    for field, found in value.items():
        if isinstance(found, list):
            if len(found) > max_inputs and not _is_one_text(field, found):
                return (field,), found
        elif isinstance(found, dict) and field not in NO_INPUTS:
            inner = _too_long(found, max_inputs)
            if inner is not None:
                path, items = inner
                return (field, *path), items
    return None


def _is_one_text(field: str, found: list[object]) -> bool:
    """Whether the list is one text in token ids, which OpenAI's clients send."""
    return field == "input" and all(type(each) is int for each in found)
