"""Who is next: waiting requests in lines of one priority each."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from heedful.runtime.engine.work import Steps, Work
from heedful.text.batch import Runner, plan_batches

SMALL_ROWS = 16
"""A request of at most as many rows is interactive, unless it is bulk."""
WINDOW = 12
"""Batches that are planned at once: more means less padding, fewer lets new requests in sooner. Of what 6 batches of
SNLI's sentences hold 6 % is padding, of 12 2 %."""


class Entry:
    """A request that waits: for its work, or with work None for the next of its steps."""

    __slots__ = ("future", "left", "line", "steps", "taken", "work")

    def __init__(self, steps: Steps[Any], line: "Line", future: asyncio.Future[Any]) -> None:
        self.steps, self.line, self.future = steps, line, future
        self.work: Work[Any] | None = None
        self.taken = 0
        """Items of the work that are in a batch."""
        self.left = 0
        """Items of the work without an output."""

    @property
    def done(self) -> bool:
        """Whether it is answered, has failed, or was cancelled."""
        return self.future.done()


Batch = list[tuple[Entry, int]]
"""Entries, and which item of the work of each."""


class Line:
    """Requests of one priority. Their runners take turns, and the requests of one runner do, an item each."""

    def __init__(self, max_wait: float) -> None:
        """`max_wait`: seconds without a turn after which it goes before lines of a higher priority."""
        self.max_wait = max_wait
        self.served_at = 0.0
        """When it had its last turn, or somebody came to wait in it."""
        self._paused: deque[Entry] = deque()
        self._runners: OrderedDict[Runner[Any], _RunnerLine] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._paused or self._runners)

    def put(self, entry: Entry) -> None:
        """Queue the entry for its work."""
        if not self:
            self.served_at = time.monotonic()
        if entry.work is None:
            self._paused.append(entry)
            return
        runner = entry.work.runner
        entry.taken, entry.left = 0, len(entry.work.items)
        entry.work.outputs = [None] * entry.left
        if runner not in self._runners:
            self._runners[runner] = _RunnerLine(runner)
        self._runners[runner].entries.append(entry)

    def take_paused(self) -> Entry | None:
        """The entry whose next step is due."""
        while self._paused:
            entry = self._paused.popleft()
            if not entry.done:
                return entry
        return None

    def take_batch(
        self, may_run: Callable[[Runner[Any]], bool]
    ) -> tuple[Runner[Any], Batch] | None:
        """The next batch, of a runner that may run now, without items of requests that are done."""
        for runner in list(self._runners):
            if not may_run(runner):
                continue
            batch = self._runners[runner].take()
            if self._runners[runner]:
                self._runners.move_to_end(runner)
            else:
                del self._runners[runner]
            if batch:
                return runner, batch
        return None


class _RunnerLine:
    """The entries that wait for one runner, and the batches that are planned for it."""

    def __init__(self, runner: Runner[Any]) -> None:
        self._runner = runner
        self.entries: deque[Entry] = deque()
        self._batches: deque[Batch] = deque()

    def __bool__(self) -> bool:
        return bool(self.entries or self._batches)

    def take(self) -> Batch:
        """The next batch; empty if nobody waits any more."""
        while self:
            if not self._batches:
                self._plan()
                continue
            if batch := [item for item in self._batches.popleft() if not item[0].done]:
                return batch
        return []

    def _plan(self) -> None:
        """Plan batches of what waits: an item of each request in turn, up to a window."""
        runner, entries = self._runner, self.entries
        items: Batch = []
        left = WINDOW * runner.budget
        while entries and left > 0:
            entry = entries.popleft()
            work = entry.work
            if entry.done or work is None:
                continue
            items.append((entry, entry.taken))
            left -= runner.cost(work.items[entry.taken])
            entry.taken += 1
            if entry.taken < len(work.items):
                entries.append(entry)
        if items:
            batches = plan_batches(runner, [item_of(entry, i) for entry, i in items])
            self._batches.extend([items[place] for place in batch] for batch in batches)


def item_of(entry: Entry, index: int) -> Any:
    """The entry's item."""
    assert entry.work is not None, "an entry in a batch waits for work"
    return entry.work.items[index]
