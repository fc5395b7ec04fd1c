"""Reloads of all serving processes, one at a time."""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from heedful.app.process.messages import ReloadFinished, ReloadNow
from heedful.app.process.worker_group import WorkerProcess
from heedful.runtime.service import Reloaded

log = logging.getLogger("heedful.supervisor")

MAX_REASONS, MAX_REASON = 25, 1000
"""Of a reload: how many reasons why a bundle was refused are passed on, and how many characters of each."""


@dataclass
class _Reload:
    asker: WorkerProcess | None
    """None for SIGHUP."""
    waiting: set[int]
    """Process ids without a result yet."""
    results: list[Reloaded] = field(default_factory=list)


class ReloadQueue:
    """`processes` are those that live; the supervisor changes them."""

    def __init__(self, processes: Sequence[WorkerProcess]) -> None:
        self._processes = processes
        self._current: _Reload | None = None
        self._askers: deque[WorkerProcess | None] = deque()

    def add(self, asker: WorkerProcess | None) -> None:
        """Reload as soon as earlier reloads have finished."""
        self._askers.append(asker)
        self._advance()

    def admits(self, process: WorkerProcess) -> bool:
        """Whether a process that can serve has the models of those that do.

        The folder may have changed since they read it. Then all of them reload first.
        """
        serving = next((other for other in self._processes if other.ready), process)
        if process.first_ready is not None or process.models == serving.models:
            return True
        if not process.differs:
            process.differs = True
            log.warning("serving process %d has loaded other models: all reload", process.pid)
            self.add(None)
        return False

    def finished(self, process: WorkerProcess, result: Reloaded | None) -> None:
        """A process has reloaded, or could not (None); one that has died could not either."""
        if self._current is None:
            return
        if result is not None:
            self._current.results.append(result)
        self._current.waiting.discard(process.pid)
        self._advance()

    def _advance(self) -> None:
        """Finish the current reload once every process has a result, and begin the next."""
        finished = self._current
        if finished and finished.waiting:
            return
        self._current = None
        if finished and self._processes:
            self._publish(finished)
        if self._askers:
            self._current = _Reload(self._askers.popleft(), {p.pid for p in self._processes})
            for process in self._processes:
                process.link.send(ReloadNow())

    def _publish(self, reload: _Reload) -> None:
        """Send the result to the process that asked, or to any if that has died."""
        asker = reload.asker if reload.asker in self._processes else None
        result = ReloadFinished(merged(reload.results), requested=asker is not None)
        (asker or self._processes[0]).link.send(result)


def merged(results: list[Reloaded]) -> Reloaded | None:
    """One result for all processes, which read the same folder; None when no process could reload.

    A process that has just started may have loaded before what is new to the others.
    """
    if not results:
        return None
    most = max(results, key=lambda result: len(result.loaded) + len(result.removed))
    refused = tuple(dict.fromkeys(line for result in results for line in result.refused))
    return shortened(replace(most, refused=refused))


def shortened(result: Reloaded) -> Reloaded:
    """The result with as many and as long reasons as fit into a control message."""
    refused = tuple(reason[:MAX_REASON] for reason in result.refused[:MAX_REASONS])
    if (more := len(result.refused) - MAX_REASONS) > 0:
        refused = (*refused, f"and {more} more")
    return replace(result, refused=refused)
