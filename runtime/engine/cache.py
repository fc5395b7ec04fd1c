"""A cache that computes each key once, even for concurrent requests."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from heedful.runtime.observer import Observer

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

BYTES = 32 * 1024 * 1024
"""Limit of one cache, so that long texts do not exhaust the memory."""


class Cache(Generic[K, V]):
    """Least recently used values, at most `items` of them and about BYTES as `weigh` counts.

    With 0 items nothing is kept, counted or shared between calls. Callers share the values and must
    not change them. For the event loop's thread only.
    """

    def __init__(
        self,
        name: str,
        items: int,
        weigh: Callable[[K, V], int],
        observer: Observer,
        *,
        limit: int = BYTES,
    ) -> None:
        self.off = not items  # one key alone needs no call then
        self._name = name
        self._items = items
        self._weigh = weigh
        self._observer = observer
        self._limit = limit
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()  # with their weights
        self._making: dict[K, _Making[K, V]] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def pending(self) -> int:
        """Keys whose values are being made."""
        return len(self._making)

    async def get(
        self, keys: Sequence[K], make: Callable[[list[int]], Awaitable[Sequence[V]]]
    ) -> list[V]:
        """One value per key, in order. `make` gets one row for each distinct key that is missing.

        A key that another call is making is awaited, unless that call makes more keys than this one:
        a small request never waits for a large one. If the other call fails or is cancelled, this
        one makes the value itself; only its own `make` raises here.
        """
        rows = {key: row for row, key in enumerate(keys)}
        if self.off:
            made_here = dict(zip(rows, await make(list(rows.values())), strict=True))
            return [made_here[key] for key in keys]
        values: dict[K, V] = {}
        missing: list[K] = []
        for key in rows:
            if kept := self._kept.get(key):
                values[key] = kept[0]
                self._kept.move_to_end(key)
            else:
                missing.append(key)
        others: dict[K, _Making[K, V]] = {}
        own: list[K] = []
        for key in missing:
            making = self._making.get(key)
            if making and making.keys <= len(missing):
                others[key] = making
            else:
                own.append(key)
        made = 0
        if own:
            made += len(own)
            values |= await self._make(own, rows, make)
        if others:
            # Awaiting each future would cancel it for the others when this call is cancelled.
            await asyncio.wait({making.done for making in others.values()})
            for key, making in others.items():
                if key in (found := making.done.result()):
                    values[key] = found[key]
            if left := [key for key in others if key not in values]:
                made += len(left)
                values |= await self._make(left, rows, make)
        self._observer.cache(self._name, len(rows) - made, made)
        return [values[key] for key in keys]

    async def _make(
        self,
        own: list[K],
        rows: dict[K, int],
        make: Callable[[list[int]], Awaitable[Sequence[V]]],
    ) -> dict[K, V]:
        """Make and store the values of these keys; other calls may await them."""
        making: _Making[K, V] = _Making(len(own), asyncio.get_running_loop().create_future())
        self._making |= dict.fromkeys(own, making)
        made: dict[K, V] = {}
        try:
            made = dict(zip(own, await make([rows[key] for key in own]), strict=True))
        finally:
            for key in own:
                if self._making.get(key) is making:  # a smaller call may have taken its place
                    del self._making[key]
            making.done.set_result(made)
        for key, value in made.items():
            self._store(key, value)
        return made

    def _store(self, key: K, value: V) -> None:
        weight = self._weigh(key, value)
        if key in self._kept or weight > self._limit:
            return
        self._kept[key] = value, weight
        self.bytes += weight
        while len(self._kept) > self._items or self.bytes > self._limit:
            _, (_, dropped) = self._kept.popitem(last=False)
            self.bytes -= dropped


@dataclass(frozen=True, slots=True, eq=False)
class _Making(Generic[K, V]):
    """A call that makes `keys` keys. `done` never fails: it is empty if the call failed."""

    keys: int
    done: asyncio.Future[dict[K, V]]
