"""A rolling update without a cluster: two services are replaced one after the other under load.

Clients do what a Service of Kubernetes does: a new connection goes to an endpoint in turn. A pod leaves the endpoints
when its preStop begins, and gets SIGTERM when that has ended.
"""

import itertools
import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.process import PATIENCE, Process, wait_for

pytestmark = pytest.mark.slow
CLIENTS = 2
FLAGS = {"port": "0", "processes": "1", "threads": "1"}


def test_a_rolling_update_under_load_loses_no_request(models: Path, tmp_path: Path) -> None:
    flags = {**FLAGS, "models": str(models)}
    over, endpoints = threading.Event(), list[str]()
    answered = [0] * CLIENTS

    def load(client: int) -> set[int]:
        """The statuses that one client got, a connection for each request, to the endpoints in turn."""
        statuses: set[int] = set()
        body = json.dumps({"inputs": ["two kids wash their hands"] * 4, "model": "tiny-sst2"})
        headers = {"Content-Type": "application/json"}
        while not over.is_set():
            now = tuple(endpoints)
            netloc = urlsplit(now[answered[client] % len(now)]).netloc
            with closing(HTTPConnection(netloc, timeout=PATIENCE)) as connection:
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
        endpoints[:] = [pod.ready() for pod in pods]
        pool = stack.enter_context(ThreadPoolExecutor(CLIENTS))
        stack.callback(over.set)
        clients = [pool.submit(load, number) for number in range(CLIENTS)]
        more_answers()
        for old in pods:
            new = stack.enter_context(closing(next(started)))
            leaving = old.url()
            endpoints.append(new.ready())  # maxSurge 1, maxUnavailable 0
            more_answers()
            endpoints[:] = [one for one in endpoints if one != leaving]
            more_answers()  # the preStop pause: what was on its way has arrived
            old.popen.send_signal(signal.SIGTERM)
            assert old.exit_status() == 0
            more_answers()
        over.set()
        assert [client.result(PATIENCE) for client in clients] == [{200}] * CLIENTS
