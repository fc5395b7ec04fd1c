"""Heedful's application without its supervisor, for benchmarks.process_models.

    python -m benchmarks.listeners uvicorn PORT PROCESSES      # uvicorn's own process manager, one shared socket
    python -m benchmarks.listeners reuseport PORT PROCESSES    # a listening socket a process

Settings come from the environment, as for `heedful serve`.
"""

import multiprocessing
import os
import socket
from multiprocessing.connection import wait
from typing import Any, Literal, cast

import typer
import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from heedful.app.application import create_app
from heedful.app.http.protocol import Protocol
from heedful.app.process.serve import run
from heedful.app.process.server import Server
from heedful.app.settings import load


class Imported(Protocol):
    """Of an application that uvicorn has imported by its name."""

    def __init__(self, config: uvicorn.Config, **rest: Any) -> None:
        config.app = config.loaded_app
        super().__init__(config, **rest)


def app() -> FastAPI:
    return create_app(load())


def by_uvicorn(port: int, processes: int) -> None:
    config = uvicorn.Config(
        "benchmarks.listeners:app",
        factory=True,
        port=port,
        workers=processes,
        http=Imported,
        proxy_headers=False,
        ws="none",
        access_log=False,
    )
    listener = config.bind_socket()
    Multiprocess(config, sockets=[listener]).run()


def by_the_kernel(port: int, processes: int) -> None:
    """A process that ends is replaced."""
    context = multiprocessing.get_context("fork")

    def start() -> "multiprocessing.context.ForkProcess":
        process = context.Process(target=_listen, args=(port,), daemon=True)
        process.start()
        return process

    running = {process.sentinel: process for process in (start() for _ in range(processes))}
    while True:
        for sentinel in wait(list(running)):
            running.pop(cast(int, sentinel))
            process = start()
            running[process.sentinel] = process


def _listen(port: int) -> None:
    listener = socket.create_server(("127.0.0.1", port), backlog=2048, reuse_port=True)
    run(Server(app()), [listener])


def main(way: Literal["uvicorn", "reuseport"], port: int, processes: int) -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    (by_uvicorn if way == "uvicorn" else by_the_kernel)(port, processes)


if __name__ == "__main__":
    typer.run(main)
