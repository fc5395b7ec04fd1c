"""Calls of many rows that wait to be done, and the queue that shares the work out fairly."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from runtime.errors import RequestError

W = TypeVar("W")  # what is to be done
R = TypeVar("R")  # what comes of it


class Call(Generic[W, R]):
    """Rows of work asked for together: `await call.done` gives their results, in order, or raises.

    Whoever waits may be cancelled; the call is then over, and its rows are left undone.
    All methods belong to the event loop's thread, except `over`.
    """

    def __init__(self, work: Sequence[W], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.done: asyncio.Future[list[R]] = loop.create_future()
        self.seconds = 0.0  # spent working on it, as the one who does the work counts it
        self._results: dict[int, R] = {}
        self._taken = 0
        if not work:
            self.done.set_result([])

    @property
    def waiting(self) -> int:
        """Rows that nobody has taken yet; none of a call that is over."""
        return 0 if self.over else len(self.work) - self._taken

    @property
    def next(self) -> W:
        """The work of the row that `take` would take."""
        return self.work[self._taken]

    def take(self) -> "Ticket[W, R]":
        self._taken += 1
        return Ticket(self, self._taken - 1)

    @property
    def over(self) -> bool:
        """Whether nobody waits any more: answered, failed or cancelled."""
        return self.done.done()

    def put(self, row: int, result: R) -> None:
        """Give one row's result; the last one answers the call."""
        if self.over:
            return
        self._results[row] = result
        if len(self._results) == len(self.work):
            self.done.set_result([self._results[row] for row in range(len(self.work))])

    def fail(self, error: RequestError) -> None:
        """Fail the whole call, unless it is over."""
        if not self.over:
            self.done.set_exception(error)


@dataclass(frozen=True, slots=True, eq=False)
class Ticket(Generic[W, R]):
    """One row of a call."""

    call: Call[W, R]
    row: int

    @property
    def work(self) -> W:
        return self.call.work[self.row]


class FairQueue(Generic[W, R]):
    """Calls whose rows wait. Taking goes round the calls, a row from each in turn.

    So a call of one row waits for one round, not for the 512 rows that came before it.
    Not thread-safe by itself.
    """

    def __init__(self) -> None:
        self._calls: deque[Call[W, R]] = deque()

    def __len__(self) -> int:
        """Rows that wait, those of calls that are over left out."""
        return sum(call.waiting for call in self._calls)

    def put(self, call: Call[W, R]) -> None:
        self._calls.append(call)

    def take(self, budget: float, cost: Callable[[W], float]) -> list[Ticket[W, R]]:
        """Rows that cost at most `budget` together; the first is taken whatever it costs."""
        taken: list[Ticket[W, R]] = []
        while self._calls:
            call = self._calls[0]
            if not call.waiting:
                self._calls.popleft()
                continue
            budget -= cost(call.next)
            if taken and budget < 0:
                break
            taken.append(call.take())
            self._calls.rotate(-1)
        return taken

    def drain(self) -> list[Call[W, R]]:
        """Take every call that still waits, whole."""
        calls = list(self._calls)
        self._calls.clear()
        return calls
