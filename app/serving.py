"""serve: settings -> a listening service, of one process or of several behind one port."""

import logging
import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

from heedful.app import logs
from heedful.app.crew import Crew, Link
from heedful.app.main import create_app
from heedful.app.server import Server
from heedful.app.settings import Settings, environment_name
from heedful.app.supervisor import Supervisor
from heedful.app.worker import Worker
from heedful.runtime.cores import usable_cores
from heedful.runtime.errors import ServiceFault, StartupError
from heedful.runtime.session import takes_cuda

log = logging.getLogger("heedful.server")

MOST_PROCESSES = 4
"""Unless more are asked for: each of them holds the models."""


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises StartupError where it cannot start.

    Ends the process with status 1 where the service cannot go on: to start it anew, later and later
    where that does not help, is what its manager is for.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to load anew
    size = processes(settings)
    listener = listen(settings.host, settings.port)
    logs.configure(settings.log_format)
    log.info("listening on http://%s:%d", settings.host, listener.getsockname()[1])
    try:
        if size == 1:
            run(Server(create_app(settings)), [listener])
        else:
            with tempfile.TemporaryDirectory(prefix="heedful-") as folder:
                crew = Crew(size, Path(folder), int(time.time()))
                Supervisor(listener, crew, lambda link: work(settings, crew, link)).run()
    except ServiceFault as fault:
        log.critical("ending, to be started anew: %s", fault)
        logging.shutdown()
        os._exit(1)  # a thread that hangs would keep the process


def processes(settings: Settings) -> int:
    """How many serve. One where there is a GPU: it runs one batch at a time."""
    if settings.processes:
        return settings.processes
    return 1 if takes_cuda(settings.device) else min(MOST_PROCESSES, usable_cores())


def run(server: Server, sockets: list[socket.socket]) -> None:
    """Serve until a signal. Raises what stopped the models from loading, or the service from going on."""
    # uvicorn raises the signal again when it is done: end with 0 then, not by the signal.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit)
    server.run(sockets)
    if failure := server.failure():
        raise failure


def work(settings: Settings, crew: Crew, link: Link) -> int:
    """Serve what the supervisor hands over; gives the exit status."""
    try:
        run(Worker(create_app(settings, crew), link), [])
    except StartupError as error:
        link.words.send(("failed", str(error)))  # once for all of them
        return 1
    except ServiceFault as fault:
        log.error("a serving process ends: %s", fault)
        return 1
    return 0


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises StartupError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = f"cannot listen on {host}:{port}: {error.strerror}"
        remedy = f"set another {environment_name('port')} or {environment_name('host')}"
        raise StartupError(f"{reason}; {remedy}") from error


def _exit(*_: object) -> NoReturn:
    sys.exit(0)
