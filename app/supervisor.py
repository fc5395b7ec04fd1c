"""The process that listens and passes each accepted connection to the next serving process.

Connections are divided evenly that way, including kept-alive ones. The supervisor reads no request,
but keeps a copy of each connection until the process that serves it is done: when that process dies,
its clients get a 503. A dead process is restarted with growing delays. When that does not help, the
supervisor gives up and the process manager restarts the whole service.

The serving processes are forked before the supervisor has a thread, and share what it has imported.
"""

import contextlib
import errno
import gc
import itertools
import logging
import multiprocessing
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable

from prometheus_client.multiprocess import mark_process_dead

from heedful.app import messages
from heedful.app.refusals import Refusals
from heedful.app.reload_queue import ReloadQueue
from heedful.app.worker_group import CONNECTION_ID_BYTES, Link, WorkerGroup, WorkerProcess
from heedful.runtime.errors import ServiceFault, StartupError

log = logging.getLogger("heedful.supervisor")

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
MAX_DEATHS = 5
"""Consecutive deaths of processes less than STABLE_SECONDS after they became ready."""
STABLE_SECONDS = 3.0
MIN_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.1, 10.0
PASS_TIMEOUT_SECONDS = 5.0
"""A connection that no process accepts for this long is refused."""
DIED = "the serving process died while answering"
ENDING = "the service is shutting down"
NONE_AVAILABLE = "no serving process accepts requests now"
FULL = (errno.EAGAIN, errno.ETOOMANYREFS)
"""The process has not read earlier connections yet."""


class Supervisor:
    """`serve(link)` runs a serving process and returns its exit status."""

    def __init__(
        self, listener: socket.socket, group: WorkerGroup, serve: Callable[[Link], int]
    ) -> None:
        self._listener = listener
        self._group = group
        self._serve = serve
        self._selector = selectors.DefaultSelector()
        self._processes: deque[WorkerProcess] = deque()
        self._refusals = Refusals(self._selector)
        self._reloads = ReloadQueue(self._processes)
        self._ending = False
        self._failure: Exception | None = None
        self._was_ready = False
        self._deaths = 0  # consecutive
        self._connection_ids = itertools.count()
        self._restarts: list[float] = []  # when to replace dead processes

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, and until every process has ended.

        Raises StartupError when they cannot start, ServiceFault when they keep dying.
        """
        _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # it holds all connections
        woken, wake = socket.socketpair()
        for end in (woken, wake, self._listener):
            end.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)  # the number comes through `woken`
        self._selector.register(woken, selectors.EVENT_READ, self._on_signal)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        gc.collect()
        gc.freeze()  # no process collects what was imported, so its pages stay shared
        for _ in range(self._group.size):
            self._start()
        while self._processes or (self._restarts and not self._ending):
            self._poll()
        self._selector.unregister(self._listener)
        self._restarts.clear()
        while self._refusals:
            self._poll()
        if self._failure:
            raise self._failure

    def _poll(self) -> None:
        """Wait for the next event or deadline, and handle it."""
        times = [*self._restarts, *self._refusals.deadlines()]
        wait = max(0.0, min(times) - time.monotonic()) if times else None
        for key, _ in self._selector.select(wait):
            if self._selector.get_map().get(key.fd) is key:  # an earlier handler may have closed it
                key.data(key.fileobj)
        now = time.monotonic()
        for due in [due for due in self._restarts if due <= now]:
            self._restarts.remove(due)
            if not self._ending:
                self._start()
        self._refusals.close_expired(now)

    def _start(self) -> None:
        """Fork a process."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        our_control, their_control = multiprocessing.Pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the child handles them
        pid = os.fork()
        if not pid:
            os._exit(self._run_child(Link(theirs, their_control), Link(ours, our_control)))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        theirs.close()
        their_control.close()
        process = WorkerProcess(pid, Link(ours, our_control))
        self._processes.append(process)
        self._selector.register(our_control, selectors.EVENT_READ, lambda _: self._receive(process))

    def _run_child(self, link: Link, other: Link) -> int:
        """In the child: close what belongs to the supervisor, and serve."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the supervisor handles it
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: sys.exit(0))  # until uvicorn sets its own
            self._selector.close()
            self._listener.close()
            other.close()
            for process in self._processes:
                process.link.close()
                for connection in process.connections.values():
                    connection.close()
            self._refusals.close_in_child()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            status = self._serve(link)
        except SystemExit as end:
            status = int(end.code or 0)
        except Exception:
            log.exception("a serving process failed")
        logging.shutdown()
        return status

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
        self._ending = True
        self._failure = self._failure or failure
        for process in self._processes:
            os.kill(process.pid, signal.SIGTERM)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionAbortedError):
            while True:
                connection, _ = listener.accept()
                if not self._pass_on(connection):
                    self._refusals.add(connection, ENDING if self._ending else NONE_AVAILABLE)

    def _pass_on(self, connection: socket.socket) -> bool:
        """Send the connection to the next ready process, or to any while none is ready.

        False when no process accepts it in time.
        """
        number = next(self._connection_ids)
        until = time.monotonic() + PASS_TIMEOUT_SECONDS
        staying = [process for process in self._processes if not process.leaving]
        candidates = [process for process in staying if process.ready] or staying
        while candidates and time.monotonic() < until:
            for process in list(candidates):
                try:
                    socket.send_fds(
                        process.link.connections,
                        [number.to_bytes(CONNECTION_ID_BYTES)],
                        [connection.fileno()],
                    )
                except OSError as error:
                    if error.errno not in FULL:
                        candidates.remove(process)  # it is dying
                    continue
                process.connections[number] = connection
                self._processes.remove(process)
                self._processes.append(process)  # the last in turn for the next connection
                return True
            time.sleep(0.01)
        return False

    def _receive(self, process: WorkerProcess) -> None:
        try:
            message: messages.FromWorker = process.link.control.recv()
        except (EOFError, OSError):
            self._selector.unregister(process.link.control)  # it has died, or is about to
        else:
            self._handle(process, message)

    def _handle(self, process: WorkerProcess, message: messages.FromWorker) -> None:
        match message:
            case messages.Ready(ready):
                self._set_ready(process, ready)
            case messages.StartFailed(reason):
                self._start_failed(reason)
            case messages.ConnectionClosed(connection):
                process.connections.pop(connection).close()
                process.pending.discard(connection)
            case messages.AnswerPending(connection, True):
                process.pending.add(connection)
            case messages.AnswerPending(connection, False):
                process.pending.discard(connection)
            case messages.Leaving():
                process.leaving = True
            case messages.ReloadRequest():
                self._reloads.add(process)
            case messages.WorkerReloaded(result):
                self._reloads.finished(process, result)

    def _set_ready(self, process: WorkerProcess, ready: bool) -> None:
        process.ready = ready
        if ready:
            process.first_ready = process.first_ready or time.monotonic()
            self._was_ready = True
        self._send_peer_status()

    def _start_failed(self, reason: str) -> None:
        if self._was_ready:
            log.error("a serving process does not start: %s", reason)
        else:
            self._shut_down(StartupError(reason))

    def _send_peer_status(self) -> None:
        """Tell every process how many are ready: each answers /ready for all."""
        ready = sum(process.ready for process in self._processes)
        for process in self._processes:
            process.link.send(messages.PeerStatus(ready, self._group.size))

    def _reap(self) -> None:
        """Collect the processes that have died."""
        for process in list(self._processes):
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            if pid:
                self._bury(process, os.waitstatus_to_exitcode(status))
        self._send_peer_status()

    def _bury(self, process: WorkerProcess, status: int) -> None:
        """Answer a dead process's clients, and replace it."""
        while process.link.control in self._selector.get_map():
            self._receive(process)  # its last messages
        self._processes.remove(process)
        process.link.close()
        for number, connection in process.connections.items():
            if number in process.pending:
                connection.close()  # a 503 would be read as the rest of that answer
            else:
                self._refusals.add(connection, ENDING if self._ending else DIED)
        mark_process_dead(process.pid, str(self._group.metrics))
        self._reloads.finished(process, None)
        if not self._ending:
            self._replace(process, status)

    def _replace(self, dead: WorkerProcess, status: int) -> None:
        """Schedule a restart after a delay, or give up."""
        ready_for = time.monotonic() - dead.first_ready if dead.first_ready is not None else 0.0
        self._deaths = 1 if ready_for > STABLE_SECONDS else self._deaths + 1
        log.error("serving process %d has ended with status %d", dead.pid, status)
        if self._deaths > MAX_DEATHS:
            self._shut_down(ServiceFault("serving processes have died again and again"))
            return
        backoff = MIN_BACKOFF_SECONDS * 2.0 ** (self._deaths - 1)
        self._restarts.append(time.monotonic() + min(backoff, MAX_BACKOFF_SECONDS))
