"""The parent of the serving processes: it forks them, and replaces those that die or hang. It reads no request.

Each process listens on its own socket, and the system divides the connections among them (SO_REUSEPORT). The
parent's memory, with the models in it, is shared with the processes that it forks.
"""

import ctypes
import gc
import logging
import math
import os
import signal
import socket
import time
from collections.abc import Callable

from heedful.app.observability.metrics import Metrics
from heedful.app.process.server import KILL_TIMEOUT
from heedful.app.process.table import ProcessTable, Slot
from heedful.app.settings import Settings
from heedful.runtime.bundles.loader import Loaded
from heedful.runtime.errors import ServiceFault, StartupError
from heedful.runtime.memory import trim_heap

log = logging.getLogger("heedful.parent")

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
CHECK_SECONDS, START_SECONDS, STABLE_SECONDS = 0.5, 60.0, 3.0
"""Between two checks of the processes; how long a new process may be silent; a process that answers for a shorter time
dies quickly."""
MAX_QUICK_DEATHS = 5  # in a row
FIRST_DELAY, LONGEST_DELAY = 0.1, 10.0  # seconds until a process is replaced
PR_SET_PDEATHSIG = 1


class Parent:
    def __init__(
        self,
        table: ProcessTable,
        settings: Settings,
        serve: Callable[[Slot, socket.socket | None, Callable[[], Loaded | None]], int],
        listeners: list[socket.socket],
        loaded: Loaded | None,
    ) -> None:
        """`serve` runs in each process, and returns its exit status. It takes the models: nothing else may keep them.

        `listeners` are those of the first processes. Without `loaded` each process reads the folder.
        """
        self._table, self._serve, self._loaded = table, serve, loaded
        self._hang_timeout = settings.hang_timeout
        self._end_timeout = settings.shutdown_timeout + KILL_TIMEOUT
        self._listeners = dict(enumerate(listeners))
        self._metrics = Metrics(table.parent)
        # When to start a process that does not run, by its index.
        self._start_at = {slot.index: 0.0 for slot in table.slots}
        self._quick_deaths = 0
        self._has_served = False
        self._watching_since = 0.0
        self._kill_at: float | None = None  # set when the service ends
        self._failure: Exception | None = None

    def run(self) -> None:
        """Run the processes until SIGTERM or SIGINT, and until all have ended.

        Raises StartupError when they cannot start, ServiceFault when they keep dying.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        gc.collect()
        gc.freeze()  # no process collects what was imported, so its pages stay shared
        while self._kill_at is None or any(slot.pid for slot in self._table.slots):
            now = time.monotonic()
            for index in [index for index, start in self._start_at.items() if start <= now]:
                self._start(self._table.slots[index])
            self._wait()
            self._reap()
            self._kill_hanging()
            # After a reload, later processes read the folder.
            if self._table.reloads_requested and self._take_loaded():
                trim_heap()
        if self._failure:
            raise self._failure

    def _wait(self) -> None:
        """Wait for a signal, for CHECK_SECONDS at most. If the parent was stopped too, the processes may be silent."""
        began = time.monotonic()
        wait = min([CHECK_SECONDS, *(start - began for start in self._start_at.values())])
        received = signal.sigtimedwait(SIGNALS, max(0.0, wait))
        if time.monotonic() - began > CHECK_SECONDS + 1:
            self._watching_since = time.monotonic()
        # After SIGCONT CPython may return a siginfo of no signal.
        if received and received.si_signo == signal.SIGHUP:
            self._table.parent.reloads_requested += 1
        elif received and received.si_signo in (signal.SIGTERM, signal.SIGINT):
            self._end()

    def _end(self, failure: Exception | None = None) -> None:
        """Have each process answer its requests and end."""
        self._kill_at = self._kill_at or time.monotonic() + self._end_timeout
        self._failure = self._failure or failure
        self._start_at.clear()
        for slot in self._table.slots:
            if slot.pid:
                os.kill(slot.pid, signal.SIGTERM)

    def _start(self, slot: Slot) -> None:
        slot.begin(time.monotonic() + START_SECONDS)
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            log.error("cannot start a serving process now: %s", error.strerror)
            self._start_at[slot.index] = time.monotonic() + LONGEST_DELAY
            return
        if not pid:
            os._exit(self._run_in_child(slot, parent))
        slot.pid = pid
        del self._start_at[slot.index]
        if listener := self._listeners.pop(slot.index, None):
            listener.close()  # or the connections that wait there would outlive the process

    def _run_in_child(self, slot: Slot, parent: int) -> int:
        status = 1
        try:
            # The process ends with the parent, even while it is stopped or hangs.
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                return status
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the parent handles it
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            listener = self._listeners.pop(slot.index, None)
            for other in self._listeners.values():
                other.close()
            status = self._serve(slot, listener, self._take_loaded)
        except SystemExit as end:
            status = int(end.code or 0)
        except Exception:
            log.exception("a serving process failed")
        logging.shutdown()
        return status

    def _take_loaded(self) -> Loaded | None:
        """The models, which the parent gives up."""
        loaded, self._loaded = self._loaded, None
        return loaded

    def _reap(self) -> None:
        self._has_served = self._has_served or any(slot.ready_since for slot in self._table.slots)
        for slot in self._table.slots:
            if not slot.pid:
                continue
            pid, status, usage = os.wait4(slot.pid, os.WNOHANG)
            if pid:
                self._table.parent.ended_seconds += usage.ru_utime + usage.ru_stime
                self._metrics.counts.clear_gauges(self._table.counts[slot.index])
                self._replace(slot, pid, os.waitstatus_to_exitcode(status))

    def _replace(self, slot: Slot, pid: int, status: int) -> None:
        """Start a process in place of this one after a while, unless processes die again and again."""
        now = time.monotonic()
        slot.pid, slot.ready = 0, False
        if self._kill_at is not None:
            return
        log.error("serving process %d has ended with status %d", pid, status)
        self._metrics.deaths[()].inc()
        if reason := slot.reason.decode(errors="replace"):
            if not self._has_served:
                self._end(StartupError(reason))
                return
            log.error("a serving process does not start: %s", reason)
        if not slot.ready_since and self._table.ready():
            # The file that is wrong now, a bundle or the certificate, was right when the others read it.
            self._start_at[slot.index] = now + LONGEST_DELAY
            return
        stable = slot.ready_since and now - slot.ready_since > STABLE_SECONDS
        self._quick_deaths = 0 if stable else self._quick_deaths + 1
        self._start_at[slot.index] = now + min(FIRST_DELAY * 2.0**self._quick_deaths, LONGEST_DELAY)
        if self._quick_deaths == MAX_QUICK_DEATHS:
            self._end(ServiceFault("serving processes have died again and again"))

    def _kill_hanging(self) -> None:
        now = time.monotonic()
        for slot in self._table.slots:
            silence = now - max(slot.heartbeat, self._watching_since)
            hangs = silence > self._hang_timeout or (self._kill_at and now > self._kill_at)
            if slot.pid and hangs and slot.heartbeat < math.inf:
                log.error("serving process %d hangs: killing it", slot.pid)
                self._metrics.limits["hang_timeout"].inc()
                slot.heartbeat = math.inf  # kills it only once
                os.kill(slot.pid, signal.SIGKILL)
