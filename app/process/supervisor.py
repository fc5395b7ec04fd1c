"""The process that listens and passes each accepted connection to the next serving process.

Connections are divided evenly that way, including kept-alive ones. The supervisor reads no request,
but keeps a copy of each connection until the process that serves it is done: when that process dies,
its clients get a 503. A process whose event loop is silent gets no connections, and is killed if it
stays so. A dead process is restarted with growing delays. When that does not help, the supervisor
gives up and the process manager restarts the whole service.

The serving processes are forked while the supervisor has no other thread, and share what it has imported and
the models that it has loaded.
"""

import gc
import logging
import os
import selectors
import signal
import socket
import time
from collections import deque
from collections.abc import Callable

from heedful.app.observability.metrics import Metrics
from heedful.app.observability.shared_counts import keep_processor_time
from heedful.app.process import messages
from heedful.app.process.acceptor import Acceptor
from heedful.app.process.client_bytes import bytes_read, has_unread
from heedful.app.process.forking import SIGNALS, fork
from heedful.app.process.refusals import Refusals
from heedful.app.process.reload_queue import ReloadQueue
from heedful.app.process.restarts import Restarts
from heedful.app.process.server import KILL_TIMEOUT
from heedful.app.process.worker_group import BUSY, Link, WorkerGroup, WorkerProcess
from heedful.app.settings import Settings
from heedful.runtime.bundles.loader import Loaded
from heedful.runtime.errors import ServiceFault, StartupError, Unavailable
from heedful.runtime.memory import trim_heap

log = logging.getLogger("heedful.supervisor")

START_SECONDS = 60.0
"""A new process may be silent for this long: it is not ready either."""
SILENT_SHARE = 1 / 3
"""Share of the hang timeout: a process that is silent for longer gets no connections."""
LOOK_SECONDS = 1.0
"""Between two looks at the processes, at most."""
DIED = Unavailable("the serving process died while answering")


class Supervisor:
    """`serve(link, take_loaded)` runs a serving process and returns its exit status.

    `loaded`, which `take_loaded()` gives up, holds the models of every process until a reload; without it each
    process reads the folder.
    """

    def __init__(
        self,
        listener: socket.socket,
        group: WorkerGroup,
        settings: Settings,
        serve: Callable[[Link, Callable[[], Loaded | None]], int],
        loaded: Loaded | None,
    ) -> None:
        self._group = group
        self._serve = serve
        self._loaded = loaded
        self._hang_timeout = settings.hang_timeout
        self._end_timeout = settings.shutdown_timeout + KILL_TIMEOUT
        self._metrics = Metrics(group)
        self._selector = selectors.DefaultSelector()
        self._processes: deque[WorkerProcess] = deque()
        self._tls = settings.tls_cert is not None  # its state dies with a process
        self._refusals = Refusals(self._selector, self._metrics, tls=self._tls)
        self._acceptor = Acceptor(
            listener,
            self._selector,
            self._processes,
            group,
            self._refusals,
            settings,
            self._metrics,
        )
        self._reloads = ReloadQueue(self._processes)
        self._kill_at: float | None = None  # set when the service ends
        self._failure: Exception | None = None
        self._peers = messages.PeerStatus(0, group.size)
        self._was_ready = False
        self._restarts = Restarts()

    @property
    def _ending(self) -> bool:
        return self._kill_at is not None

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, and until every process has ended.

        Raises StartupError when they cannot start, ServiceFault when they keep dying.
        """
        woken, wake = socket.socketpair()
        for end in (woken, wake):
            end.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)  # the number comes through `woken`
        self._selector.register(woken, selectors.EVENT_READ, self._on_signal)
        self._acceptor.start()
        gc.collect()
        gc.freeze()  # no process collects what was imported, so its pages stay shared
        for _ in range(self._group.size):
            self._start()
        while self._processes or (self._restarts and not self._ending):
            self._poll()
        self._acceptor.stop()
        self._restarts.clear()
        while self._refusals:
            self._poll()
        if self._failure:
            raise self._failure

    def _poll(self) -> None:
        """Wait for the next event or deadline, and handle it."""
        now = time.monotonic()
        parts = (self._refusals, self._acceptor, self._restarts)
        times = (part.deadline() for part in parts)
        wait = max(0.0, min([LOOK_SECONDS, *(each - now for each in times if each is not None)]))
        events = self._selector.select(wait)
        self._excuse(time.monotonic() - now - wait)
        for key, _ in events:
            if self._selector.get_map().get(key.fd) is key:  # an earlier handler may have closed it
                key.data(key.fileobj)
        now = time.monotonic()
        for _ in range(self._restarts.due(now)):
            if not self._ending:
                self._start()
        self._acceptor.poll(now)
        self._refusals.close_expired(now)
        self._look_after(now)

    def _excuse(self, overslept: float) -> None:
        """Seconds in which the supervisor did not run either, as in `docker pause`, are no silence of a process."""
        for process in self._processes:
            process.heard += max(0.0, overslept)

    def _look_after(self, now: float) -> None:
        """Find processes that hang, and tell every process how many do not."""
        for process in self._processes:
            silence = now - process.heard
            process.silent = silence > SILENT_SHARE * self._hang_timeout
            late = silence > self._hang_timeout or (self._kill_at and now > self._kill_at)
            if late and not process.killed:
                log.error("serving process %d hangs: killing it", process.pid)
                self._metrics.limit("hang_timeout")
                os.kill(process.pid, signal.SIGKILL)
                process.killed = True
                process.ready = False
        ready = sum(process.ready and not process.silent for process in self._processes)
        if ready != self._peers.ready:
            self._peers = messages.PeerStatus(ready, self._group.size)
            for process in self._processes:
                process.link.send(self._peers)

    def _start(self) -> None:
        """Fork a process, or try again later."""
        slots = {process.link.slot for process in self._processes}
        slot = next(n for n in range(1, self._group.size + 1) if n not in slots)
        try:
            pid, link = fork(
                slot, lambda link: self._serve(link, self._take_loaded), self._close_in_child
            )
        except OSError as error:
            log.error("cannot start a serving process now: %s", error.strerror)
            self._restarts.later()
            return
        process = WorkerProcess(pid, link, time.monotonic() + START_SECONDS)
        self._processes.append(process)
        self._selector.register(
            link.control, selectors.EVENT_READ, lambda _: self._receive(process)
        )

    def _take_loaded(self) -> Loaded | None:
        """Give up the models."""
        loaded, self._loaded = self._loaded, None
        return loaded

    def _close_in_child(self) -> None:
        """Close a forked child's copies; the supervisor keeps its own."""
        self._selector.close()
        self._acceptor.close_in_child()
        for process in self._processes:
            process.link.close()
            for connection in process.connections.values():
                connection.close()
        self._refusals.close_in_child()

    def _on_signal(self, woken: socket.socket) -> None:
        for number in set(woken.recv(4096)):
            if number == signal.SIGHUP:
                self._reloads.add(None)
            elif number == signal.SIGCHLD:
                self._reap()
            else:
                self._shut_down()

    def _shut_down(self, failure: Exception | None = None) -> None:
        """Let every process finish its requests in flight; connections are still passed on."""
        self._kill_at = self._kill_at or time.monotonic() + self._end_timeout
        self._acceptor.ending = True
        self._failure = self._failure or failure
        for process in self._processes:
            os.kill(process.pid, signal.SIGTERM)

    def _receive(self, process: WorkerProcess) -> None:
        """Handle the messages that have come."""
        try:
            while (message := process.link.receive()) is not None:
                process.heard = time.monotonic()
                self._handle(process, message)
        except EOFError:
            self._selector.unregister(process.link.control)  # it has died, or is about to

    def _handle(self, process: WorkerProcess, message: messages.Message) -> None:
        match message:
            case messages.Alive(ready, models):
                process.models = models
                self._set_ready(process, ready and self._reloads.admits(process))
            case messages.StartFailed(reason):
                self._start_failed(reason)
            case messages.ConnectionClosed(number):
                process.connections.pop(number).close()
                self._acceptor.released(number)
            case messages.ConnectionLost(number):
                connection = process.connections.pop(number)
                self._acceptor.released(number)
                self._metrics.limit("descriptors")
                reason = "the service has no descriptor left: try again later"
                self._refusals.add(connection, Unavailable(reason))
            case messages.Leaving():
                process.leaving = True
            case messages.ReloadRequest():
                self._reloads.add(process)
            case messages.WorkerReloaded(result):
                if self._take_loaded():  # processes that are started from now on read the folder
                    trim_heap()
                self._reloads.finished(process, result)

    def _set_ready(self, process: WorkerProcess, ready: bool) -> None:
        process.ready = ready
        if ready:
            process.first_ready = process.first_ready or time.monotonic()
            self._was_ready = True

    def _start_failed(self, reason: str) -> None:
        if self._was_ready:
            log.error("a serving process does not start: %s", reason)
        else:
            self._shut_down(StartupError(reason))

    def _reap(self) -> None:
        """Collect the processes that have died."""
        for process in list(self._processes):
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                seconds = used.ru_utime + used.ru_stime
                keep_processor_time(self._group.counts[process.link.slot], seconds)
                self._replace_dead(process, os.waitstatus_to_exitcode(status))

    def _replace_dead(self, process: WorkerProcess, status: int) -> None:
        """Answer a dead process's clients, and replace it."""
        while process.link.control in self._selector.get_map():
            self._receive(process)  # its last messages
        self._processes.remove(process)
        process.link.close()
        for number, connection in process.connections.items():
            state = self._group.states[number]
            if 0 <= state < bytes_read(connection):
                state = BUSY  # it died before it could say so
            # Nothing of an idle client's next request has been read: another process answers that.
            movable = state >= 0 and not self._tls and not self._ending
            if movable and self._acceptor.move(connection):
                continue
            self._acceptor.released(number)
            # A 503 would be read as the rest of an answer, or as the answer to the next request.
            if state == BUSY or (state >= 0 and has_unread(connection)):
                self._refusals.add(connection, DIED)
            else:
                connection.close()
        self._reloads.finished(process, None)
        if not self._ending:
            log.error("serving process %d has ended with status %d", process.pid, status)
            self._metrics.death()
            others_serve = any(other.ready for other in self._processes)
            if not self._restarts.replace(process, others_serve=others_serve):
                self._shut_down(ServiceFault("serving processes have died again and again"))
