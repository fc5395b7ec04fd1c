"""serve: settings -> a listening service of one or several processes."""

import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NoReturn

from heedful import kernels
from heedful.app.application import create_app
from heedful.app.http.tls import check_tls
from heedful.app.observability import logs
from heedful.app.process.messages import StartFailed
from heedful.app.process.server import Server
from heedful.app.process.supervisor import Supervisor
from heedful.app.process.worker import SupervisedPeers, Worker
from heedful.app.process.worker_group import Link, WorkerGroup
from heedful.app.settings import Settings, environment_name
from heedful.runtime.bundles.loader import Loaded, load_before_fork
from heedful.runtime.cores import usable_cores
from heedful.runtime.engine.session import takes_cuda
from heedful.runtime.errors import ServiceFault, StartupError

log = logging.getLogger("heedful.server")

MAX_DEFAULT_PROCESSES = 4
"""Each process holds the models; more must be asked for."""


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises StartupError when it cannot start.

    When the service cannot recover, exits with status 1 so that the process manager restarts it.
    """
    size = processes(settings)
    check_tls(settings)
    listener = listen(settings.host, settings.port)
    logs.configure(settings.log_format, settings.log_level)
    for warning in settings.warnings():
        log.warning(warning)
    if not takes_cuda(settings.device) and not kernels.library():
        log.warning(
            "the C kernels are not built: encoding takes up to twice the time. "
            "Install heedful again, with a C compiler and without HEEDFUL_KERNELS=0"
        )
    scheme = "https" if settings.tls_cert else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    log.info("listening on %s://%s:%d", scheme, host, listener.getsockname()[1])
    raise_descriptor_limit()
    try:
        if size == 1:
            run(Server(create_app(settings)), [listener])
        else:
            group = WorkerGroup.create(size)
            serve_in = partial(run_worker, settings, group)
            Supervisor(listener, group, settings, serve_in, load_for_workers(settings)).run()
    except ServiceFault as fault:
        log.critical("cannot recover, exiting to be restarted: %s", fault)
        logging.shutdown()
        os._exit(1)  # a hanging thread would keep the process alive


def processes(settings: Settings) -> int:
    """How many processes serve. One with a GPU, which runs one batch at a time."""
    if settings.processes:
        return settings.processes
    return 1 if takes_cuda(settings.device) else min(MAX_DEFAULT_PROCESSES, usable_cores())


def run(server: Server, sockets: list[socket.socket]) -> None:
    """Serve until a signal. Raises StartupError or ServiceFault when the server failed."""
    # uvicorn raises the signal again when it is done: exit with 0 then, not by the signal.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit)
    server.run(sockets)
    if failure := server.failure():
        raise failure


def load_for_workers(settings: Settings) -> Loaded | None:
    """The models that the serving processes share; None with CUDA, which does not survive a fork."""
    if takes_cuda(settings.device):
        return None
    return load_before_fork(settings.models, settings.parser)


def run_worker(
    settings: Settings,
    group: WorkerGroup,
    link: Link,
    take_loaded: Callable[[], Loaded | None],
) -> int:
    """Serve the connections that the supervisor passes on; returns the exit status.

    `take_loaded` gives up its models: nobody but the service may keep them after a reload. Without any, the
    service reads the folder.
    """
    peers = SupervisedPeers(link)
    group = replace(group, slot=link.slot)
    try:
        check_tls(settings)  # the files may have changed since the service has started
        run(Worker(create_app(settings, group, peers, take_loaded()), group, link, peers), [])
    except StartupError as error:
        link.send(StartFailed(str(error)))  # the supervisor reports it once for all
        return 1
    except ServiceFault as fault:
        log.error("a serving process cannot recover: %s", fault)
        return 1
    return 0


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises StartupError when the address is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()  # IPv4 too: probes ask 127.0.0.1
    try:
        return socket.create_server((host, port), family=family, backlog=2048, dualstack_ipv6=both)
    except OSError as error:
        reason = f"cannot listen on {host}:{port}: {error.strerror}"
        remedy = f"set another {environment_name('port')} or {environment_name('host')}"
        raise StartupError(f"{reason}; {remedy}") from error


def raise_descriptor_limit() -> None:
    """A connection takes one, and the usual soft limit is small."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def _exit(*_: object) -> NoReturn:
    sys.exit(0)
