"""A service on tiny real bundles: asked over ASGI, or in a separate process."""

import asyncio
import contextlib
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from heedful.app.application import create_app
from heedful.app.settings import PREFIX, Settings
from heedful.app.state import state_of
from heedful.runtime.service import Service
from tests.app.posting import Client, state
from tests.process import HOLDING, PATIENCE, ROOT, Process

Serve = Callable[..., AbstractAsyncContextManager[Client]]
Start = Callable[..., Process]


@pytest.fixture(autouse=True, scope="session")
def _no_settings_from_outside() -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]


@contextlib.asynccontextmanager
async def held(client: Client) -> AsyncIterator[Service]:
    """The client's service, none of whose models answers inside the context."""
    service = state(client).service
    pool, released = service._engine._threads, threading.Event()
    assert pool is not None, "serve it with threads=1"
    holding = pool.submit(released.wait)
    try:
        yield service
    finally:
        released.set()
        await asyncio.wrap_future(holding)


async def in_flight(service: Service, inputs: int) -> None:
    """Wait until that many inputs are in flight."""
    async with asyncio.timeout(PATIENCE):
        while service._engine.in_flight < inputs:
            await asyncio.sleep(0)


@pytest.fixture(scope="session")
def serve(models: Path) -> Serve:
    """`async with serve(max_queue=4) as client`: a service with these settings; it loads no models where `start` is
    False."""

    @contextlib.asynccontextmanager
    async def make(*, start: bool = True, **settings: Any) -> AsyncIterator[Client]:
        app = create_app(Settings(**{"models": models, **settings}))
        async with contextlib.AsyncExitStack() as stack:
            if start:
                await stack.enter_async_context(app.router.lifespan_context(app))
                await state_of(app).starting
            transport = httpx.ASGITransport(app=app)
            client = httpx.AsyncClient(transport=transport, base_url="http://heedful")
            yield await stack.enter_async_context(client)

    return make


@pytest.fixture(scope="session")
async def client(serve: Serve) -> AsyncIterator[Client]:
    """The service that most tests share, with its default limits."""
    async with serve(max_batch_inputs=64) as client:
        yield client


@pytest.fixture(scope="session")
def healthcheck() -> list[str]:
    """The command of the Dockerfile's HEALTHCHECK."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    [line] = [line for line in text.splitlines() if line.startswith("HEALTHCHECK")]
    python, *arguments = json.loads(line[line.index("[") :])
    assert python == "python"
    return [sys.executable, *arguments]


KEY = "sesame"
KEYED = {"port": "0", "threads": "1", "api-key": KEY}
MAX_CONNECTIONS = 60


@pytest.fixture(scope="session")
def process(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A ready service in a separate process, with an API key, 64 inputs at most, one queue."""
    limits = {"processes": "1", "max-batch-inputs": "64", "max-queue": "64"}
    flags = {**KEYED, **limits, "models": str(models)}
    with closing(Process(tmp_path_factory.mktemp("process") / "log", flags, HOLDING)) as process:
        process.ready()
        yield process


@pytest.fixture(scope="session")
def service(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A service of two processes, whose limits are short, so that they end here soon; its TMPDIR is new."""
    limits = {
        **{"head-timeout": "2", "idle-timeout": "2", "write-timeout": "2", "hang-timeout": "4"},
        **{"shutdown-timeout": "1", "max-connections": str(MAX_CONNECTIONS)},
        **{"max-queue": "8192", "max-batch-inputs": "8192", "log-level": "debug"},
        "cache-items": "0",  # what is held answers nothing
    }
    flags = {**KEYED, **limits, "models": str(models), "processes": "2"}
    env = {**HOLDING, "TMPDIR": str(tmp_path_factory.mktemp("temporary"))}
    with closing(Process(tmp_path_factory.mktemp("abused") / "log", flags, env)) as process:
        process.ready()
        yield process


@pytest.fixture
def start(models: Path, tmp_path: Path) -> Iterator[Start]:
    """`start(shutdown_timeout="1")`: a process with these flags, ended with the test."""
    with contextlib.ExitStack() as stack:
        logs = (tmp_path / f"log{number}" for number in range(99))

        def make(env: dict[str, str] | None = None, **flags: str) -> Process:
            small = {"port": "0", "models": str(models), "processes": "1", "threads": "1"}
            named = {name.replace("_", "-"): value for name, value in {**small, **flags}.items()}
            process = Process(next(logs), named, {**HOLDING, **(env or {})})
            return stack.enter_context(closing(process))

        yield make
