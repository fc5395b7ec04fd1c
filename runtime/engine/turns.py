"""Long steps take turns on the event loop: one in each of its rounds.

A round runs everything that is ready. Without turns, the steps of six large requests, 5 ms each, hold up a small
request for 30 ms at every hand-over.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from weakref import WeakKeyDictionary


class Turns:
    """The waiting steps of one event loop. For its thread only."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], object]] = deque()

    def call(self, step: Callable[[], object]) -> None:
        """Call the step in its turn."""
        self._waiting.append(step)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._next)

    async def wait(self) -> None:
        """Return when it is the caller's turn. If the caller is cancelled, its turn passes empty."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.call(partial(_resolve, turn))
        await turn

    def _next(self) -> None:
        step = self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        step()


def _resolve(turn: "asyncio.Future[None]") -> None:
    if not turn.done():
        turn.set_result(None)


class Once:
    """Asks for a step that is taken once, however often it was asked for until then."""

    def __init__(
        self, step: Callable[[], object], schedule: Callable[[Callable[[], object]], object]
    ) -> None:
        self._step, self._schedule = step, schedule
        self._asked = False

    def __call__(self) -> None:
        if not self._asked:
            self._asked = True
            self._schedule(self._take)

    def _take(self) -> None:
        self._asked = False
        self._step()


def soon(step: Callable[[], object]) -> None:
    """Call the step in the next round of the event loop."""
    asyncio.get_running_loop().call_soon(step)


def gathering(
    waiting: Callable[[], int], enough: int, gap: float = 0.0
) -> Callable[[Callable[[], object]], None]:
    """A schedule for `Once`: it calls the step after the first round of the event loop that did not raise `waiting()`.

    For steps that cost less for many items at once. `waiting()` counts the items; from `enough` items on, the step is
    called in the next round. Otherwise at least `gap` seconds pass between two calls. A round takes microseconds in an
    idle event loop; a busy one reads the requests that have arrived.
    """
    due = 0.0

    def look(step: Callable[[], object], before: int) -> None:
        nonlocal due
        now = waiting()
        if before < now < enough:
            soon(partial(look, step, now))
        elif now < enough and (left := due - time.monotonic()) > 0:
            asyncio.get_running_loop().call_later(left, look, step, now)
        else:
            step()
            due = time.monotonic() + gap

    return lambda step: soon(partial(look, step, waiting()))


def in_turn(step: Callable[[], object]) -> None:
    """Call the step in its turn."""
    turns().call(step)


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


def turns() -> Turns:
    """Those of the running event loop."""
    return _TURNS.setdefault(asyncio.get_running_loop(), Turns())
