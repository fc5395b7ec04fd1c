"""Calls of many rows, and the queue that serves them fairly."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from heedful.runtime.errors import RequestError

W = TypeVar("W")  # an item of work
R = TypeVar("R")  # its result

SMALL_ROWS = 16
"""A call of at most as many rows is small, unless it is bulk: it may go ahead of larger ones."""


class Call(Generic[W, R]):
    """Rows requested together: `await call.done` gives their results in order, or raises.

    If the caller is cancelled, the call is finished and its remaining rows are dropped. For the
    event loop's thread only, except `finished`.
    """

    def __init__(
        self, items: Sequence[W], loop: asyncio.AbstractEventLoop, *, bulk: bool = False
    ) -> None:
        self.items = items
        self.bulk = bulk  # waits while other calls do
        self.small = len(items) <= SMALL_ROWS and not bulk
        self.done: asyncio.Future[list[R]] = loop.create_future()
        self.seconds = 0.0  # of work, counted by the worker
        self._results: dict[int, R] = {}
        self.taken = 0  # rows that have left the queue
        if not items:
            self.done.set_result([])

    @property
    def finished(self) -> bool:
        """Whether it is answered, failed or cancelled."""
        return self.done.done()

    def put(self, row: int, result: R) -> None:
        """Set one row's result; the last one answers the call."""
        if self.done.done():
            return
        self._results[row] = result
        rows = len(self.items)
        if len(self._results) == rows:
            self.done.set_result([self._results[row] for row in range(rows)])

    def fail(self, error: RequestError) -> None:
        """Fail the whole call unless it is finished."""
        if not self.finished:
            self.done.set_exception(error)


@dataclass(slots=True, eq=False)
class Ticket(Generic[W, R]):
    """One row of a call."""

    call: Call[W, R]
    row: int

    @property
    def item(self) -> W:
        return self.call.items[self.row]


class FairQueue(Generic[W, R]):
    """Waiting rows, taken round-robin: one from each call in turn.

    A call of one row waits for one round, not for the 512 rows that came before it. Rows of bulk
    calls are taken while no other wait. Not thread-safe.
    """

    def __init__(self) -> None:
        self._normal: OrderedDict[Call[W, R], None] = OrderedDict()
        self._bulk: OrderedDict[Call[W, R], None] = OrderedDict()
        self._rows = 0
        self._large = 0  # calls that are not small
        self._small_turn = False  # whether the last turn was that of small calls

    def __len__(self) -> int:
        """Waiting rows."""
        return self._rows

    @property
    def only_bulk(self) -> bool:
        return not self._normal

    @property
    def has_small(self) -> bool:
        """Whether a small call waits."""
        return any(call.small and not call.finished for call in self._normal)

    @property
    def has_large(self) -> bool:
        """Whether another call waits, or has finished and is not discarded yet."""
        return self._large > 0

    def small_turn(self) -> bool:
        """Whether small calls alone should be taken now: never twice in a row while larger ones wait."""
        # A finished call that is not discarded yet has no rows to take: a turn of it alone would be empty.
        kinds = {call.small for call in self._normal if not call.finished}
        self._small_turn = True in kinds and not (self._small_turn and False in kinds)
        return self._small_turn

    def put(self, call: Call[W, R]) -> None:
        """Queue the call's rows; `discard` it when its caller has gone."""
        if call.items:
            self._of(call)[call] = None
            self._rows += len(call.items)
            self._large += not call.small

    def take(
        self,
        budget: float,
        cost: Callable[[W], float],
        max_tickets: int | None = None,
        *,
        small: bool | None = None,
    ) -> list[Ticket[W, R]]:
        """Up to `max_tickets` rows that cost at most `budget` together; at least one if any waits.

        Those of small calls alone, or of others, if `small` says so.
        """
        tickets: list[Ticket[W, R]] = []
        line = self._normal or self._bulk
        calls = deque(call for call in line if small is None or call.small == small)
        while calls and len(tickets) != max_tickets:
            call = calls.popleft()
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
                del line[call]
                self._large -= not call.small
            else:
                line.move_to_end(call)
                calls.append(call)
        return tickets

    def discard(self, call: Call[W, R]) -> None:
        """Drop the call's waiting rows, if any."""
        if call in self._of(call):
            del self._of(call)[call]
            self._rows -= len(call.items) - call.taken
            self._large -= not call.small

    def _of(self, call: Call[W, R]) -> OrderedDict[Call[W, R], None]:
        """The calls of its class."""
        return self._bulk if call.bulk else self._normal

    def drain(self) -> list[Call[W, R]]:
        """Remove and return every waiting call."""
        calls = [*self._normal, *self._bulk]
        self._normal.clear()
        self._bulk.clear()
        self._rows = self._large = 0
        return calls
