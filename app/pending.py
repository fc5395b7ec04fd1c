"""What requests count, kept until it is handed to prometheus_client: its locks and checks take 1 to 3 µs a value.

Adding to a pending value changes a number or two of this process; `flush` adds them to the metric.
"""

from bisect import bisect_left
from collections.abc import Sequence

from prometheus_client import Counter, Gauge, Histogram


class PendingCounter:
    """Add to `more`."""

    __slots__ = ("_counter", "more")

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self.more = 0

    def flush(self) -> None:
        if self.more:
            self._counter.inc(self.more)
            self.more = 0


class PendingGauge:
    """Set `value`."""

    __slots__ = ("_gauge", "_shown", "value")

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._shown = self.value = 0

    def flush(self) -> None:
        if self.value != self._shown:
            self._gauge.set(self.value)
            self._shown = self.value


class PendingHistogram:
    """Observations by bucket, and their sum."""

    __slots__ = ("_bounds", "_counts", "_histogram", "_sum")

    def __init__(self, histogram: Histogram, bounds: Sequence[float]) -> None:
        """`bounds` are the histogram's buckets."""
        self._histogram = histogram
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)  # the last one is of larger values
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def flush(self) -> None:
        """prometheus_client takes observations one by one only, so this adds to the values inside its histogram."""
        if not any(self._counts):
            return
        self._histogram._sum.inc(self._sum)
        for bucket, count in zip(self._histogram._buckets, self._counts, strict=True):
            if count:
                bucket.inc(count)
        self._counts = [0] * len(self._counts)
        self._sum = 0.0
