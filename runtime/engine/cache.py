"""A cache of sentences' vectors."""

import sys
from collections import OrderedDict
from collections.abc import Sequence

from heedful.runtime.observer import Observer
from heedful.text.arrays import Floats

BYTES = 32 * 1024 * 1024
"""Limit of a cache, so that long texts do not exhaust the memory."""

Key = tuple[str, bytes]
"""A bundle's version, and a sentence's key."""


class VectorCache:
    """The vectors used last, at most `items` of them and about `limit` bytes. Callers must not change them.

    Only one thread at a time may use it.
    """

    def __init__(self, items: int, observer: Observer, limit: int = BYTES) -> None:
        self._items, self._observer, self._limit = items, observer, limit
        self.vectors: OrderedDict[Key, Floats] = OrderedDict()
        self.bytes = 0

    def get(self, keys: Sequence[Key]) -> dict[Key, Floats]:
        """The vectors of those keys that are cached. Counts hits and misses of the keys, which are distinct."""
        vectors = {key: self.vectors[key] for key in keys if key in self.vectors}
        for key in vectors:
            self.vectors.move_to_end(key)
        self._observer.cache("vector", len(vectors), len(keys) - len(vectors))
        return vectors

    def put(self, key: Key, vector: Floats) -> None:
        """Keep a copy: the vector may be a row of its batch, which would stay alive."""
        weight = _weight(key, vector)
        if key in self.vectors or weight > self._limit:
            return
        self.vectors[key] = vector.copy()
        self.bytes += weight
        while len(self.vectors) > self._items or self.bytes > self._limit:
            oldest, dropped = self.vectors.popitem(last=False)
            self.bytes -= _weight(oldest, dropped)


def _weight(key: Key, vector: Floats) -> int:
    """Bytes of an item, with Python's objects."""
    return sys.getsizeof(key) + sys.getsizeof(key[-1]) + 112 + vector.nbytes
