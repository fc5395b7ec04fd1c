"""A rolling update without a cluster: two services behind a proxy are replaced one after the other under load.

The proxy is a Service of Kubernetes: a new connection goes to an endpoint in turn. A pod leaves the endpoints
when its preStop begins, and gets SIGTERM when that has ended.
"""

import asyncio
import itertools
import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.builders import build_models
from tests.process import PATIENCE, Process, wait_for

pytestmark = pytest.mark.slow
CLIENTS = 2
FLAGS = {"port": "0", "processes": "1", "threads": "1"}


class Proxy:
    """Passes each connection on to one of `endpoints`, whole."""

    def __init__(self) -> None:
        self.endpoints: list[str] = []
        self._next = itertools.count()

    async def serve(self, listening: "asyncio.Future[str]") -> None:
        server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        listening.set_result("http://{}:{}".format(*server.sockets[0].getsockname()))
        async with server:
            await server.serve_forever()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chosen = self.endpoints[next(self._next) % len(self.endpoints)]
        try:
            to = urlsplit(chosen)
            its_reader, its_writer = await asyncio.open_connection(to.hostname, to.port)
            await asyncio.gather(_copy(reader, its_writer), _copy(its_reader, writer))
        except OSError:
            writer.close()  # the client sees a connection that ends without an answer


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()
    finally:
        writer.close()
        await writer.wait_closed()


@contextmanager
def proxied() -> Iterator[tuple[Proxy, str]]:
    """A proxy and its URL."""
    proxy = Proxy()
    loop = asyncio.new_event_loop()
    listening: asyncio.Future[str] = loop.create_future()

    def work() -> None:
        serving = loop.create_task(proxy.serve(listening))
        loop.run_until_complete(stopped)
        serving.cancel()
        loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True))

    stopped: asyncio.Future[None] = loop.create_future()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_for(lambda: listening.done() or None, "the proxy")
        yield proxy, listening.result()
    finally:
        loop.call_soon_threadsafe(stopped.set_result, None)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rolling") / "bundles"
    folder.mkdir()
    build_models(folder)
    return folder


def test_a_rolling_update_under_load_loses_no_request(models: Path, tmp_path: Path) -> None:
    flags = {**FLAGS, "models": str(models)}
    over = threading.Event()
    answered = [0] * CLIENTS

    def load(url: str, client: int) -> set[int]:
        """The statuses that one client got, a connection for each request."""
        statuses: set[int] = set()
        body = json.dumps({"inputs": ["two kids wash their hands"] * 4, "model": "tiny-sst2"})
        headers = {"Content-Type": "application/json"}
        while not over.is_set():
            with closing(HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)) as connection:
                connection.request("POST", "/embed", body, headers)
                with connection.getresponse() as answer:
                    answer.read()
                    statuses.add(answer.status)
            answered[client] += 1
        return statuses

    def more_answers() -> None:
        """Wait until every client was answered three times more."""
        before = list(answered)
        wait_for(
            lambda: all(n >= b + 3 for n, b in zip(answered, before, strict=True)) or None, "load"
        )

    with ExitStack() as stack:
        started = (Process(tmp_path / f"pod{number}", flags, {}) for number in itertools.count())
        pods = [stack.enter_context(closing(next(started))) for _ in range(2)]
        proxy, url = stack.enter_context(proxied())
        proxy.endpoints = [pod.ready() for pod in pods]
        pool = stack.enter_context(ThreadPoolExecutor(CLIENTS))
        stack.callback(over.set)
        clients = [pool.submit(load, url, number) for number in range(CLIENTS)]
        more_answers()
        for old in pods:
            new = stack.enter_context(closing(next(started)))
            leaving = old.url()
            proxy.endpoints = [*proxy.endpoints, new.ready()]  # maxSurge 1, maxUnavailable 0
            more_answers()
            proxy.endpoints = [one for one in proxy.endpoints if one != leaving]
            more_answers()  # the preStop pause: what was on its way has arrived
            old.popen.send_signal(signal.SIGTERM)
            assert old.exit_status() == 0
            more_answers()
        over.set()
        assert [client.result(PATIENCE) for client in clients] == [{200}] * CLIENTS
