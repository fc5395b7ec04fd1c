"""Calls of many rows that wait to be done, and the queue that shares the work out fairly."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from heedful.runtime.errors import RequestError

W = TypeVar("W")  # what is to be done
R = TypeVar("R")  # what comes of it


class Call(Generic[W, R]):
    """Rows of work asked for together: `await call.done` gives their results, in order, or raises.

    Whoever waits may be cancelled; the call is then over, and its rows are left undone.
    All methods belong to the event loop's thread, except `over`.
    """

    def __init__(self, items: Sequence[W], loop: asyncio.AbstractEventLoop) -> None:
        self.items = items
        self.done: asyncio.Future[list[R]] = loop.create_future()
        self.seconds = 0.0  # spent working on it, as the one who does the work counts it
        self._results: dict[int, R] = {}
        self.taken = 0  # rows that the queue has given away
        if not items:
            self.done.set_result([])

    @property
    def finished(self) -> bool:
        """Whether nobody waits any more: answered, failed or cancelled."""
        return self.done.done()

    def put(self, row: int, result: R) -> None:
        """Give one row's result; the last one answers the call."""
        if self.finished:
            return
        self._results[row] = result
        if len(self._results) == len(self.items):
            self.done.set_result([self._results[row] for row in range(len(self.items))])

    def fail(self, error: RequestError) -> None:
        """Fail the whole call, unless it is over."""
        if not self.finished:
            self.done.set_exception(error)


@dataclass(frozen=True, slots=True, eq=False)
class Ticket(Generic[W, R]):
    """One row of a call."""

    call: Call[W, R]
    row: int

    @property
    def item(self) -> W:
        return self.call.items[self.row]


class FairQueue(Generic[W, R]):
    """Calls whose rows wait. Taking goes round the calls, a row from each in turn.

    So a call of one row waits for one round, not for the 512 rows that came before it.
    Not thread-safe by itself.
    """

    def __init__(self) -> None:
        self._calls: OrderedDict[Call[W, R], None] = OrderedDict()
        self._rows = 0

    def __len__(self) -> int:
        """Rows that wait."""
        return self._rows

    def put(self, call: Call[W, R]) -> None:
        """Let the call's rows wait; `discard` it when nobody waits for it any more."""
        if call.items:
            self._calls[call] = None
            self._rows += len(call.items)

    def take(
        self, budget: float, cost: Callable[[W], float], most: int | None = None
    ) -> list[Ticket[W, R]]:
        """Rows, `most` at most, that cost at most `budget` together; the first whatever it costs."""
        tickets: list[Ticket[W, R]] = []
        while self._calls and len(tickets) != most:
            call = next(iter(self._calls))
            if call.finished:
                self.discard(call)
                continue
            ticket = Ticket(call, call.taken)
            budget -= cost(ticket.item)
            if tickets and budget < 0:
                break
            tickets.append(ticket)
            call.taken += 1
            self._rows -= 1
            if call.taken == len(call.items):
                del self._calls[call]
            else:
                self._calls.move_to_end(call)
        return tickets

    def discard(self, call: Call[W, R]) -> None:
        """Drop the rows of the call that still wait, if any."""
        if call in self._calls:
            del self._calls[call]
            self._rows -= len(call.items) - call.taken

    def drain(self) -> list[Call[W, R]]:
        """Take every call that still waits, whole."""
        calls = list(self._calls)
        self._calls.clear()
        self._rows = 0
        return calls
