"""The inputs in flight: how many, which requests may add to them, and when a refused one should return."""

import asyncio
import math
import time
from collections.abc import Callable
from types import TracebackType

from heedful.runtime.engine.lines import SMALL_ROWS
from heedful.runtime.errors import Overloaded

RESERVE_SHARE = 1 / 8
"""The reserve as a share of the queue, in addition to it: large requests cannot fill it."""
DRAIN_SECONDS = 5.0
"""Time constant of the measured drain rate."""
MIN_RETRY, MAX_RETRY = 1, 30
"""Seconds that a refused client may be told to wait."""


class Admission:
    """Counts the inputs in flight and refuses requests beyond `max_inputs` of them.

    Small requests, unless they are bulk, may go beyond that by a reserve.
    """

    def __init__(self, max_inputs: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_inputs = max_inputs
        self._reserve = int(max_inputs * RESERVE_SHARE)
        self._clock = clock
        self._in_flight = 0
        self._drained = 0.0  # inputs per second, averaged up to `_drained_at`
        self._drained_at = clock()
        self._empty = asyncio.Event()
        self._empty.set()
        self.untrimmed = False
        """Whether requests have used memory since this was last reset."""

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def admit(self, inputs: int, *, bulk: bool = False) -> "Admitted":
        """A context in which the request's inputs count as in flight; raises Overloaded on entry."""
        return Admitted(self, inputs, bulk=bulk)

    def enter(self, inputs: int, *, bulk: bool) -> None:
        """Count the inputs as in flight, or raise Overloaded."""
        small = inputs <= SMALL_ROWS and not bulk
        most = self._max_inputs + (self._reserve if small else 0)
        if (excess := self._in_flight + inputs - most) > 0:
            wait = self._retry_after(excess)
            raise Overloaded(
                f"{self._in_flight} inputs are in flight and at most {most} may be: "
                f"try again in {wait} s",
                retry_after=wait,
            )
        self._in_flight += inputs
        self.untrimmed = True
        self._empty.clear()

    def leave(self, inputs: int) -> None:
        """They are in flight no more."""
        self._in_flight -= inputs
        self._drained = self._drain_rate() + inputs / DRAIN_SECONDS
        self._drained_at = self._clock()
        if not self._in_flight:
            self._empty.set()

    async def wait_until_empty(self) -> None:
        await self._empty.wait()

    def _drain_rate(self) -> float:
        """Inputs per second that have left lately."""
        return self._drained * math.exp((self._drained_at - self._clock()) / DRAIN_SECONDS)

    def _retry_after(self, excess: int) -> int:
        """Seconds until as many inputs will have left, at the measured rate."""
        rate = self._drain_rate()
        if excess >= rate * MAX_RETRY:
            return MAX_RETRY
        return max(MIN_RETRY, math.ceil(excess / rate))


class Admitted:
    """The inputs of one request, in flight while its context is."""

    __slots__ = ("_admission", "_bulk", "_inputs")

    def __init__(self, admission: Admission, inputs: int, *, bulk: bool) -> None:
        self._admission, self._inputs, self._bulk = admission, inputs, bulk

    def __enter__(self) -> None:
        self._admission.enter(self._inputs, bulk=self._bulk)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._admission.leave(self._inputs)
