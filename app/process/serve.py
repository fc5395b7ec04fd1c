"""serve: settings -> a listening service of one or several processes."""

import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from heedful import kernels
from heedful.app.application import create_app
from heedful.app.http.tls import check_tls
from heedful.app.observability import logs
from heedful.app.process import listening
from heedful.app.process.parent import Parent
from heedful.app.process.server import Server
from heedful.app.process.table import ProcessTable, Slot
from heedful.app.settings import Settings
from heedful.runtime.bundles.loader import Loaded, load_before_fork
from heedful.runtime.cores import usable_cores
from heedful.runtime.device import resolve
from heedful.runtime.errors import ServiceFault, StartupError

log = logging.getLogger("heedful.server")


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises StartupError when it cannot start.

    When the service cannot recover, exits with status 1 so that the process manager restarts it.
    """
    check_tls(settings)
    # Not shared, so that it fails where another service listens, which would get a share of the connections.
    listener = listening.listen(settings.host, settings.port)
    try:
        with listener, thread_limit_explained():
            _serve(settings, listener)
    except ServiceFault as fault:
        log.critical("cannot recover, exiting to be restarted: %s", fault)
        logging.shutdown()
        listening.remove_file(settings.host)
        os._exit(1)  # a hanging thread would keep the process alive
    finally:
        listening.remove_file(settings.host)


@contextmanager
def thread_limit_explained() -> Iterator[None]:
    """Raise StartupError where the system starts no more threads: Python's RuntimeError does not name the limit."""
    try:
        yield
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        raise StartupError(
            "the system starts no more threads: raise the limit on processes (ulimit -u, a container's pids)"
        ) from None


def _serve(settings: Settings, listener: socket.socket) -> None:
    """`serve` with the socket of its address. Raises ServiceFault when the service cannot recover."""
    logs.configure(settings.log_format, settings.log_level)
    for warning in settings.warnings():
        log.warning(warning)
    device = resolve(settings.device)
    if device == "cpu" and not kernels.library():
        log.warning(
            "the C kernels are not built: encoding takes up to twice the time. "
            "Install heedful again, with a C compiler and without HEEDFUL_KERNELS=0"
        )
    scheme = "https" if settings.tls_cert else "http"
    log.info("listening on %s", listening.address(listener, settings.host, scheme))
    # The soft limit is usually small, and each connection takes a descriptor.
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    # For all processes, until uvicorn sets its handlers; at its end it raises the signal again.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    size = settings.processes or usable_cores()
    if size == 1:
        run(Server(create_app(settings), lambda: listener, at_once=True))
        return
    table = ProcessTable(size, settings.hang_timeout)
    with listening.for_processes(listener, settings.host, size) as (listeners, open_listener):
        serve_child = partial(serve_in_child, settings, open_listener)
        Parent(
            table,
            settings,
            serve_child,
            listeners,
            # Processes share the models, which no variable here may keep. With CUDA each loads them after the fork.
            load_before_fork(settings.models, settings.parser) if device == "cpu" else None,
        ).run()


def run(server: Server) -> None:
    """Serve until a signal. Raises StartupError or ServiceFault when the server failed."""
    server.run()
    if failure := server.failure():
        raise failure


def serve_in_child(
    settings: Settings,
    listen: Callable[[], socket.socket],
    slot: Slot,
    listener: socket.socket | None,
    take_loaded: Callable[[], Loaded | None],
) -> int:
    """Serve until SIGTERM; returns the exit status. Without a `listener` it calls `listen` when it is ready.

    `take_loaded` returns the models and gives them up: only the service may keep them, until a reload. Where it returns
    None, the service reads the folder.
    """
    try:
        check_tls(settings)  # the files may have changed since the service has started
        with thread_limit_explained():
            run(Server(create_app(settings, slot, take_loaded()), lambda: listener or listen()))
    except StartupError as error:
        # The parent reports the reason, once for all processes.
        slot.reason = str(error).encode(errors="replace")[:999]
        return 1
    except ServiceFault as fault:
        log.error("a serving process cannot recover: %s", fault)
        return 1
    return 0
