"""The process that listens where several serve: it hands each connection to the next of them.

So connections are divided evenly, kept-alive ones too, which neither a shared listening socket nor
SO_REUSEPORT does. It reads nothing of what is sent, but holds each connection open until the process
that serves it is done with it: when one dies, its clients are told so, with a 503. It starts anew what
dies, later each time, and gives up where that does not help: to start the whole anew is what its
manager is for.

The processes are forked from it, before it has a thread: what they have imported they share.
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
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.multiprocess import mark_process_dead

from heedful.app import errors
from heedful.app.crew import NUMBER, Crew, Link
from heedful.runtime.errors import ServiceFault, StartupError, Unavailable
from heedful.runtime.service import Reloaded

log = logging.getLogger("heedful.supervisor")

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
FAILURES = 5
"""Processes that may die one after the other, less than WELL_SECONDS after they were ready."""
WELL_SECONDS = 3.0
FIRST_BACKOFF_SECONDS, LAST_BACKOFF_SECONDS = 0.1, 10.0
BUSY_SECONDS = 5.0
"""A connection that no process takes for so long is dropped."""
LINGER_SECONDS = 5.0
"""A client that was refused has so long to read its answer."""
DIED = "a serving process died with the request in hand"
ENDING = "the service is shutting down"
NOBODY = "no serving process takes a request now"
FULL = (errno.EAGAIN, errno.ETOOMANYREFS)
"""A process has not read what was handed to it before."""


@dataclass(eq=False)
class Served:
    """A serving process, as the supervisor sees it."""

    pid: int
    link: Link
    held: dict[int, socket.socket] = field(default_factory=dict)
    """Its connections, by number."""
    sending: set[int] = field(default_factory=set)
    """Those on which it has sent a part of an answer."""
    ready: bool = False
    leaving: bool = False
    well_from: float | None = None
    """When it was ready for the first time."""


@dataclass
class Reload:
    """A reload in progress: who asked, who has not answered yet, what has been answered."""

    asker: Served | None
    waiting: set[int]
    answers: list[Reloaded] = field(default_factory=list)


class Supervisor:
    """`serve(link)` is what a serving process does; it returns its exit status."""

    def __init__(self, listener: socket.socket, crew: Crew, serve: Callable[[Link], int]) -> None:
        self._listener = listener
        self._crew = crew
        self._serve = serve
        self._selector = selectors.DefaultSelector()
        self._processes: deque[Served] = deque()
        self._ending = False
        self._failure: Exception | None = None
        self._was_ready = False
        self._deaths = 0  # in a row
        self._numbers = itertools.count()
        self._due: list[float] = []  # when processes are to be started in place of dead ones
        self._refused: dict[socket.socket, float] = {}  # until when they may still be read
        self._reload: Reload | None = None
        self._askers: deque[Served | None] = deque()  # of reloads that wait

    def run(self) -> None:
        """Until SIGTERM or SIGINT, and until every process has ended.

        Raises StartupError where they cannot start, ServiceFault where they do not stay.
        """
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # it holds what all of them hold
        woken, wake = socket.socketpair()
        for end in (woken, wake, self._listener):
            end.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)  # the number comes through `woken`
        self._selector.register(woken, selectors.EVENT_READ, self._signalled)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        gc.collect()
        gc.freeze()  # what was imported is looked through by no process, and stays shared
        for _ in range(self._crew.size):
            self._start()
        while self._processes or (self._due and not self._ending):
            self._turn()
        self._selector.unregister(self._listener)
        self._due.clear()
        while self._refused:
            self._turn()
        if self._failure:
            raise self._failure

    def _turn(self) -> None:
        """Heed what has happened, or is due."""
        times = [*self._due, *self._refused.values()]
        wait = max(0.0, min(times) - time.monotonic()) if times else None
        for key, _ in self._selector.select(wait):
            if self._selector.get_map().get(key.fd) is key:  # one before it may have closed it
                key.data(key.fileobj)
        now = time.monotonic()
        for due in [due for due in self._due if due <= now]:
            self._due.remove(due)
            if not self._ending:
                self._start()
        for connection in [each for each, until in self._refused.items() if until <= now]:
            self._close(connection)

    def _start(self) -> None:
        """Fork a process."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        our_words, their_words = multiprocessing.Pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the child can heed them
        pid = os.fork()
        if not pid:
            os._exit(self._be(Link(theirs, their_words), Link(ours, our_words)))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        theirs.close()
        their_words.close()
        served = Served(pid, Link(ours, our_words))
        self._processes.append(served)
        self._selector.register(our_words, selectors.EVENT_READ, lambda _: self._hear(served))

    def _be(self, link: Link, other: Link) -> int:
        """In the child: let go of what is the supervisor's, and serve."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the supervisor heeds it for all
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: sys.exit(0))  # uvicorn's take their place
            self._selector.close()
            self._listener.close()
            other.close()
            for served in self._processes:
                served.link.close()
                for connection in served.held.values():
                    connection.close()
            for connection in self._refused:
                connection.close()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            status = self._serve(link)
        except SystemExit as end:
            status = int(end.code or 0)
        except Exception:
            log.exception("a serving process ends")
        logging.shutdown()
        return status

    def _signalled(self, woken: socket.socket) -> None:
        for number in set(woken.recv(4096)):
            if number == signal.SIGHUP:
                self._askers.append(None)
                self._reload_next()
            elif number == signal.SIGCHLD:
                self._reap()
            else:
                self._end()

    def _end(self, failure: Exception | None = None) -> None:
        """Let every process answer what it has in hand; connections are handed on meanwhile."""
        self._ending = True
        self._failure = self._failure or failure
        for served in self._processes:
            os.kill(served.pid, signal.SIGTERM)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionAbortedError):
            while True:
                connection, _ = listener.accept()
                if not self._hand_over(connection):
                    self._refuse(connection, ENDING if self._ending else NOBODY)

    def _hand_over(self, connection: socket.socket) -> bool:
        """Give it to the next process that is ready; to any while none is, which then says so.

        Whether one has taken it.
        """
        number = next(self._numbers)
        until = time.monotonic() + BUSY_SECONDS
        staying = [served for served in self._processes if not served.leaving]
        left = [served for served in staying if served.ready] or staying
        while left and time.monotonic() < until:
            for served in list(left):
                try:
                    socket.send_fds(
                        served.link.connections, [number.to_bytes(NUMBER)], [connection.fileno()]
                    )
                except OSError as error:
                    if error.errno not in FULL:
                        left.remove(served)  # it is dying
                    continue
                served.held[number] = connection
                self._processes.remove(served)
                self._processes.append(served)  # the last to be asked next time
                return True
            time.sleep(0.01)
        return False

    def _hear(self, served: Served) -> None:
        """What a process says."""
        try:
            word, value = served.link.words.recv()
        except (EOFError, OSError):
            self._selector.unregister(served.link.words)  # it has died, or is about to
            return
        if word == "ready":
            served.ready = value
            if value:
                served.well_from = served.well_from or time.monotonic()
                self._was_ready = True
            self._tell_company()
        elif word == "closed":
            served.held.pop(value).close()
            served.sending.discard(value)
        elif word == "sending":
            number, going = value
            (served.sending.add if going else served.sending.discard)(number)
        elif word == "leaving":
            served.leaving = True
        elif word == "failed":
            if not self._was_ready:
                self._end(StartupError(value))
            else:
                log.error("a serving process does not start: %s", value)
        elif word == "reload":
            self._askers.append(served)
            self._reload_next()
        elif word == "reloaded" and self._reload:
            if value is not None:
                self._reload.answers.append(value)
            self._reload.waiting.discard(served.pid)
            self._reload_next()

    def _reap(self) -> None:
        """Look which processes have died."""
        for served in list(self._processes):
            pid, status = os.waitpid(served.pid, os.WNOHANG)
            if not pid:
                continue
            while served.link.words in self._selector.get_map():
                self._hear(served)  # its last words
            self._processes.remove(served)
            served.link.close()
            for number, connection in served.held.items():
                if number in served.sending:
                    connection.close()  # a 503 would be read as the rest of that answer
                else:
                    self._refuse(connection, ENDING if self._ending else DIED)
            mark_process_dead(pid, str(self._crew.metrics))
            if self._reload:
                self._reload.waiting.discard(pid)
                self._reload_next()
            if not self._ending:
                self._replace(served, os.waitstatus_to_exitcode(status))
        self._tell_company()

    def _replace(self, dead: Served, status: int) -> None:
        """Start another in its place after a while, or give up."""
        well = dead.well_from is not None and time.monotonic() - dead.well_from > WELL_SECONDS
        self._deaths = 1 if well else self._deaths + 1
        log.error("serving process %d has ended with status %d", dead.pid, status)
        if self._deaths > FAILURES:
            self._end(ServiceFault("serving processes have died again and again"))
            return
        backoff = FIRST_BACKOFF_SECONDS * 2.0 ** (self._deaths - 1)
        self._due.append(time.monotonic() + min(backoff, LAST_BACKOFF_SECONDS))

    def _tell_company(self) -> None:
        """How many of the processes are ready: each of them answers /ready for all."""
        ready = sum(served.ready for served in self._processes)
        for served in self._processes:
            self._say(served, "company", (ready, self._crew.size))

    def _reload_next(self) -> None:
        """End the reload in progress if all have answered, and begin the next that is asked for."""
        done = self._reload
        if done and done.waiting:
            return
        self._reload = None
        if done and self._processes:
            asked = done.asker in self._processes
            teller = done.asker if done.asker and asked else self._processes[0]
            result = merged(done.answers)
            if result:
                self._say(teller, "tell", result)
            if asked:
                self._say(teller, "reloaded", result)
        if self._askers:
            asker = self._askers.popleft()
            self._reload = Reload(asker, {served.pid for served in self._processes})
            for served in self._processes:
                self._say(served, "reload", None)

    def _refuse(self, connection: socket.socket, why: str) -> None:
        """Answer 503, and close it when the client has: what it still sends to a closed connection
        would make it lose the answer."""
        connection.setblocking(False)
        self._refused[connection] = time.monotonic() + LINGER_SECONDS
        self._selector.register(connection, selectors.EVENT_READ, self._drain)
        try:
            connection.send(errors.spoken(Unavailable(why)))
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # the client has gone, or does not read
            self._close(connection)

    def _drain(self, connection: socket.socket) -> None:
        try:
            more = connection.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        if not more:
            self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        """Of one that was refused."""
        self._refused.pop(connection)
        self._selector.unregister(connection)
        connection.close()

    def _say(self, served: Served, word: str, value: Any) -> None:
        with contextlib.suppress(OSError):  # it is dying
            served.link.words.send((word, value))


def merged(answers: list[Reloaded]) -> Reloaded | None:
    """What all the processes' reloads came to: the folder is one. None where none could."""
    if not answers:
        return None
    refused = tuple(dict.fromkeys(line for answer in answers for line in answer.refused))
    first = answers[0]
    return Reloaded(first.loaded, first.unchanged, first.removed, refused)
