"""What ends a request without its answer: its time limit, and a client that has gone."""

import asyncio
from collections.abc import Callable

LOOK_SECONDS = 0.05


class Deadlines:
    """Looks at all requests every LOOK_SECONDS: a timer and a task for each would take some 20 µs of it."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Timeout, tuple[float, Callable[[], bool]]] = {}
        self._looks = False

    def add(self, timeout: asyncio.Timeout, seconds: float, gone: Callable[[], bool]) -> None:
        """Expire the timeout after so many seconds, or once the client has `gone`, unless it is removed."""
        loop = asyncio.get_running_loop()
        self._open[timeout] = loop.time() + seconds, gone
        if not self._looks:
            self._looks = True
            loop.call_later(LOOK_SECONDS, self._look)

    def remove(self, timeout: asyncio.Timeout) -> None:
        self._open.pop(timeout, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for timeout, (end, gone) in self._open.items():
            if timeout.when() is None and (loop.time() >= end or gone()):
                timeout.reschedule(0.0)
        self._looks = bool(self._open)
        if self._looks:
            loop.call_later(LOOK_SECONDS, self._look)
