"""Counters, gauges and histograms in memory that the processes of a service share.

Each process counts in a part of its own, and any of them sums all parts for its page. A part is a list of series: a
word of 8 bytes with the length of the key and the number of values; the key, which is the metric's name and its
labels' values; the values. A process that replaces a dead one goes on with its part.
"""

from __future__ import annotations  # memoryview has no parameters before Python 3.14

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Generic, TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

PART_BYTES = 1 << 20
"""Of one process: some thousand series. What is never written takes no memory."""
RESERVED_BYTES = 1 << 15
"""For the series `other` of each metric, which counts what a full part has no place for."""
OTHER = "other"

Labels = str | tuple[str | int, ...]
S = TypeVar("S", bound="Series")


class Part:
    """The series of one process."""

    def __init__(self, memory: memoryview) -> None:
        self._bytes, self._words = memory, memory.cast("Q")  # the first word is where the list ends
        self.values: memoryview[float] = memory.cast("d")
        self._places = {key: place for key, place, _ in self.series()}

    def series(self) -> Iterator[tuple[bytes, int, int]]:
        """Key, index of the first value, number of values of each."""
        at, end = 1, self._words[0]
        while at < end:
            length, count = self._words[at] & 0xFFFF_FFFF, self._words[at] >> 32
            place = at + 1 + -(-length // 8)
            yield bytes(self._bytes[8 * at + 8 : 8 * at + 8 + length]), place, count
            at = place + count

    def place(self, key: bytes, count: int, *, reserved: bool = False) -> int | None:
        """Where the values are; a new series begins at 0. None if the part is full."""
        if key in self._places:
            return self._places[key]
        at = self._words[0] or 1
        place = at + 1 + -(-len(key) // 8)
        if 8 * (place + count) > len(self._bytes) - (0 if reserved else RESERVED_BYTES):
            return None
        self._bytes[8 * at + 8 : 8 * at + 8 + len(key)] = key
        self._words[at] = len(key) | count << 32
        self._words[0] = place + count  # last: nobody reads further
        self._places[key] = place
        return place


class Series:
    __slots__ = ("_place", "_values")

    def __init__(self, values: memoryview[float], place: int) -> None:
        self._values, self._place = values, place


class Counter(Series):
    __slots__ = ()

    def inc(self, more: float = 1.0) -> None:
        self._values[self._place] += more


class Gauge(Series):
    __slots__ = ()

    def set(self, value: float) -> None:
        self._values[self._place] = value


class Histogram(Series):
    """A value for each bucket, that of larger values than any bound, and the sum."""

    __slots__ = ("_bounds",)

    def __init__(self, values: memoryview[float], place: int, bounds: Sequence[float]) -> None:
        super().__init__(values, place)
        self._bounds = bounds

    def observe(self, value: float) -> None:
        self._values[self._place + bisect_left(self._bounds, value)] += 1.0
        self._values[self._place + len(self._bounds) + 1] += value


class Family(dict[Labels, S], Generic[S]):
    """A metric: its series by the values of its labels."""

    def __init__(
        self,
        part: Part,
        kind: Any,
        name: str,
        help: str,
        labels: tuple[str, ...],
        made: Callable[[memoryview[float], int], S],
        bounds: Sequence[float] | None = None,
    ) -> None:
        """`kind` is prometheus_client's class of it. `made` makes a series at a place."""
        super().__init__()
        self.kind, self.name, self.help, self.labels, self.bounds = kind, name, help, labels, bounds
        self._part, self._made = part, made
        self._count = 1 if bounds is None else len(bounds) + 2

    def __missing__(self, labels: Labels) -> S:
        values = labels if isinstance(labels, tuple) else (labels,)
        place = self._part.place(self._key(values), self._count)
        if place is None:
            others = self._key((OTHER,) * len(values))
            place = self._part.place(others, self._count, reserved=True)
        assert place is not None, "RESERVED_BYTES has room for one series of each metric"
        self[labels] = series = self._made(self._part.values, place)
        return series

    def _key(self, values: Sequence[str | int]) -> bytes:
        return "\0".join((self.name, *map(str, values))).encode()

    def metric(self, sums: Mapping[tuple[str, ...], Sequence[float]]) -> Metric:
        """The metric as the page shows it, from the values of each series."""
        shown = self.kind(self.name, self.help, labels=self.labels)
        edges = [*map(str, map(float, self.bounds or ())), "+Inf"]
        for labels, values in sums.items():
            if self.bounds is None:
                shown.add_metric(labels, values[0])
            else:
                buckets = list(zip(edges, accumulate(values[:-1]), strict=True))
                shown.add_metric(labels, buckets, values[-1])
        metric: Metric = shown
        return metric


class Counts(Collector):
    """Every metric, summed over the parts."""

    def __init__(self, part: Part, parts: Sequence[memoryview]) -> None:
        """`part` is this process's."""
        self._part, self._parts = part, parts
        self.families: list[Family[Any]] = []

    def counter(self, name: str, help: str, *labels: str) -> Family[Counter]:
        return self._added(Family(self._part, CounterMetricFamily, name, help, labels, Counter))

    def gauge(self, name: str, help: str, *labels: str) -> Family[Gauge]:
        return self._added(Family(self._part, GaugeMetricFamily, name, help, labels, Gauge))

    def histogram(
        self, name: str, help: str, bounds: Sequence[float], *labels: str
    ) -> Family[Histogram]:
        made = partial(Histogram, bounds=bounds)
        kind = HistogramMetricFamily
        return self._added(Family(self._part, kind, name, help, labels, made, bounds))

    def _added(self, family: Family[S]) -> Family[S]:
        self.families.append(family)
        return family

    def clear_gauges(self, memory: memoryview) -> None:
        """Of the part of a process that has died."""
        gauges = [family for family in self.families if family.kind is GaugeMetricFamily]
        names, part = {family.name.encode() for family in gauges}, Part(memory)
        for key, place, _ in part.series():
            if key.partition(b"\0")[0] in names:
                part.values[place] = 0.0

    def sums(self) -> dict[str, dict[tuple[str, ...], list[float]]]:
        """By metric and labels' values."""
        sums: dict[str, dict[tuple[str, ...], list[float]]] = {}
        for part in map(Part, self._parts):
            for key, place, count in part.series():
                name, *labels = key.decode().split("\0")
                values = sums.setdefault(name, {}).setdefault(tuple(labels), [0.0] * count)
                for i, value in enumerate(part.values[place : place + count]):
                    values[i] += value
        return sums

    def collect(self) -> Iterable[Metric]:
        sums = self.sums()
        for family in self.families:
            yield family.metric(sums.get(family.name, {}))
