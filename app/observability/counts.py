"""Counters, gauges and histograms in memory that the processes of a service share.

Each process counts in its part of the memory, and each sums all parts for its page. A part is a list of series: a
word of 8 bytes with the length of the key and the number of values; the key, which is the metric's name and its
labels' values; the values. A process that replaces a dead one continues its part.
"""

from __future__ import annotations  # memoryview has no parameters before Python 3.14

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

PART_BYTES = 1 << 20
"""A part's size: some thousand series. Pages that are never written take no memory."""
RESERVED_BYTES = 1 << 15
"""For the series `other` of each metric, which counts in place of series that do not fit into a full part."""
OTHER = "other"

Labels = str | tuple[str | int, ...]


class Part:
    """The series of one process."""

    def __init__(self, memory: memoryview) -> None:
        # The first word is the index of the list's end.
        self._bytes, self._words = memory, memory.cast("Q")
        self.values: memoryview[float] = memory.cast("d")
        self._places = {key: place for key, place, _ in self.series()}

    def series(self) -> Iterator[tuple[bytes, int, int]]:
        """The key, the index of the first value and the number of values of each series."""
        start, end = 1, self._words[0]
        while start < end:
            length, count = self._words[start] & 0xFFFF_FFFF, self._words[start] >> 32
            place = start + 1 + -(-length // 8)
            yield bytes(self._bytes[8 * start + 8 : 8 * start + 8 + length]), place, count
            start = place + count

    def place(self, key: bytes, count: int, *, reserved: bool = False) -> int | None:
        """The index of the key's first value; the values of a new series are 0. None if the part is full."""
        if key in self._places:
            return self._places[key]
        start = self._words[0] or 1
        place = start + 1 + -(-len(key) // 8)
        if 8 * (place + count) > len(self._bytes) - (0 if reserved else RESERVED_BYTES):
            return None
        self._bytes[8 * start + 8 : 8 * start + 8 + len(key)] = key
        self._words[start] = len(key) | count << 32
        self._words[0] = place + count  # last: other processes read up to it
        self._places[key] = place
        return place


class Series:
    """The value of a counter or a gauge.

    Those of a histogram are a count for each bucket, one for values above all bounds, and the sum of the values.
    """

    __slots__ = ("_bounds", "_place", "_values")

    def __init__(self, values: memoryview[float], place: int, bounds: Sequence[float]) -> None:
        self._values, self._place, self._bounds = values, place, bounds

    def inc(self, amount: float = 1.0) -> None:
        self._values[self._place] += amount

    def set(self, value: float) -> None:
        self._values[self._place] = value

    def observe(self, value: float) -> None:
        self._values[self._place + bisect_left(self._bounds, value)] += 1.0
        self._values[self._place + len(self._bounds) + 1] += value


class Family(dict[Labels, Series]):
    """A metric: its series by the values of its labels."""

    def __init__(
        self,
        part: Part,
        kind: Any,
        name: str,
        help: str,
        labels: tuple[str, ...],
        bounds: Sequence[float] = (),
    ) -> None:
        """`kind` is prometheus_client's class of the metric, `bounds` are a histogram's."""
        super().__init__()
        self.kind, self.name, self.help, self.labels, self.bounds = kind, name, help, labels, bounds
        self._part = part
        self._count = len(bounds) + 2 if bounds else 1

    def __missing__(self, labels: Labels) -> Series:
        values = labels if isinstance(labels, tuple) else (labels,)
        place = self._part.place(self._key(values), self._count)
        if place is None:
            other = self._key((OTHER,) * len(values))
            place = self._part.place(other, self._count, reserved=True)
        assert place is not None, "RESERVED_BYTES has room for one series of each metric"
        self[labels] = series = Series(self._part.values, place, self.bounds)
        return series

    def _key(self, values: Sequence[str | int]) -> bytes:
        return "\0".join((self.name, *map(str, values))).encode()


class Counts(Collector):
    """All metrics, summed over the parts."""

    def __init__(self, part: Part, parts: Sequence[memoryview]) -> None:
        """`part` is this process's, `parts` are those of all processes."""
        self._part, self._parts = part, parts
        self.families: list[Family] = []

    def counter(self, name: str, help: str, *labels: str) -> Family:
        return self._add(Family(self._part, CounterMetricFamily, name, help, labels))

    def gauge(self, name: str, help: str, *labels: str) -> Family:
        return self._add(Family(self._part, GaugeMetricFamily, name, help, labels))

    def histogram(self, name: str, help: str, bounds: Sequence[float], *labels: str) -> Family:
        return self._add(Family(self._part, HistogramMetricFamily, name, help, labels, bounds))

    def _add(self, family: Family) -> Family:
        self.families.append(family)
        return family

    def clear_gauges(self, memory: memoryview) -> None:
        """Set the gauges of a part to 0, whose process has died."""
        gauges = [family for family in self.families if family.kind is GaugeMetricFamily]
        names, part = {family.name.encode() for family in gauges}, Part(memory)
        for key, place, _ in part.series():
            if key.partition(b"\0")[0] in names:
                part.values[place] = 0.0

    def sums(self) -> dict[str, dict[tuple[str, ...], list[float]]]:
        """The summed values of each series, by the metric's name and the labels' values."""
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
            metric = family.kind(family.name, family.help, labels=family.labels)
            edges = [*map(str, map(float, family.bounds)), "+Inf"]
            for labels, values in sums.get(family.name, {}).items():
                if family.bounds:
                    buckets = list(zip(edges, accumulate(values[:-1]), strict=True))
                    metric.add_metric(labels, buckets, values[-1])
                else:
                    metric.add_metric(labels, values[0])
            yield metric
