"""Faults under load, each against its own service. A scenario asserts what must hold for every request,
and returns its measurements: the tests run it briefly, `make soak` at length."""

import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np

from benchmarks.soak.load import HUNG_SECONDS, Answer, Load, load, mixed, texts, until
from heedful.export import bundle_writer
from heedful.runtime.bundles import bundle
from heedful.runtime.bundles.card import ENCODER, GOLDEN
from tests.process import Process

CLIENTS = 8
KEY = "sesame"
TOLERANCE = 1e-5

Flags = Mapping[str, object]
"""Flags of `heedful serve`, without their dashes."""


@dataclass(frozen=True)
class Place:
    """The bundles of a scenario, the model it queries, and an empty folder."""

    models: Path
    model: str  # of kind classification
    scratch: Path

    @asynccontextmanager
    async def service(
        self, flags: Flags | None = None, *, models: Path | None = None, module: str = "heedful"
    ) -> AsyncIterator[tuple[Process, str]]:
        """A ready service of two processes, and its URL."""
        settings = {
            "port": 0,
            "models": models or self.models,
            "processes": 2,
            "threads": 1,
            "log-format": "json",
            **(flags or {}),
        }
        log = self.scratch / f"log-{time.monotonic_ns()}"
        written = {name: str(value) for name, value in settings.items()}
        process = Process(log, written, {}, (sys.executable, "-m", module))
        try:
            yield process, await asyncio.to_thread(process.ready)
        finally:
            process.close()

    def kinds(self) -> dict[str, str]:
        """The kind of each model."""
        cards = (json.loads(card.read_text()) for card in self.models.glob("*/card.json"))
        return {card["name"]: card["kind"] for card in cards}


def check(answers: list[Answer], *allowed: int) -> None:
    """No request hung; each has one of these statuses and a matching body."""
    assert answers
    for answer in answers:
        assert answer.status in allowed, answer
        assert answer.sound, answer


@dataclass(frozen=True)
class Kills:
    kills_of_serving_processes: int
    requests: dict[str, int]
    ready_again_after_seconds: float  # the longest


async def kill_servers(place: Place, rounds: int) -> Kills:
    """SIGKILL to each serving process in turn: only its requests in progress break, at most one a client."""
    longest, kills = 0.0, 0
    async with (
        place.service() as (process, url),
        load(url, mixed(1, place.kinds())) as clients,
        clients.beside(CLIENTS),
    ):
        for _ in range(rounds):
            for pid in process.servers():
                await answered(clients, 20)
                before = len(clients.answers)
                os.kill(pid, signal.SIGKILL)
                kills += 1

                def gone(killed: int = pid) -> bool:
                    return killed not in process.children()

                await until(gone, "its end")
                ended = time.monotonic()
                waited = await until(lambda: told(url, 200), "a service that is ready")
                longest = max(longest, waited)
                broken = [answer for answer in clients.answers[before:] if not answer.status]
                assert len(broken) <= CLIENTS, broken
                assert all(answer.sent < ended for answer in broken), broken
        await answered(clients, 20)
    complete = [answer for answer in clients.answers if answer.status]
    check(complete, 200)
    return Kills(kills, clients.statuses(), longest)


async def told(url: str, status: int) -> bool:
    """Whether /ready answers with `status` to a probe: over a new connection, which has a second to answer."""
    async with httpx.AsyncClient(timeout=1) as probe:
        with suppress(httpx.TransportError):
            return (await probe.get(url + "/ready")).status_code == status
    return False


async def answered(clients: Load, more: int) -> None:
    """Wait for `more` answers."""
    before = len(clients.answers)
    await until(lambda: len(clients.answers) >= before + more, "answers")


@dataclass(frozen=True)
class Vanishing:
    clients: int
    descriptors_before: int
    descriptors_after: int


async def vanish(place: Place, clients: int) -> Vanishing:
    """Clients that disconnect inside a head, inside a body, and while they wait."""
    body = json.dumps({"inputs": texts(2, 8), "model": place.model, "truncate": True}).encode()
    head = b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    async with place.service() as (process, url):
        port = int(url.rpartition(":")[2])
        await asyncio.to_thread(httpx.get, url + "/metrics", timeout=HUNG_SECONDS)
        before = process.descriptors()
        for number in range(clients):
            sent = request[: (len(head) // 2, len(request) - 9, len(request))[number % 3]]
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(sent)

        def over() -> bool:
            page = httpx.get(url + "/metrics", timeout=HUNG_SECONDS).text
            waiting = [line for line in page.splitlines() if line.startswith("heedful_queue_inp")]
            assert waiting
            return all(line.endswith(" 0.0") for line in waiting)

        await until(lambda: asyncio.to_thread(over), "empty queues")
        await until(lambda: process.descriptors() <= before, "descriptors to be closed")
        after = process.descriptors()
        answer = httpx.post(url + "/embed", json={"inputs": "a"}, timeout=HUNG_SECONDS)
        assert answer.status_code == 200
        return Vanishing(clients, before, after)


@dataclass(frozen=True)
class Terminations:
    terminations: int
    requests: dict[str, int]
    exit_after_seconds: float  # the longest


async def terminate(place: Place, rounds: int) -> Terminations:
    """SIGTERM: every request that the service logs as answered has reached its client."""
    ends: list[Answer] = []
    longest = 0.0
    for _ in range(rounds):
        async with place.service() as (process, url), load(url, mixed(3, place.kinds())) as clients:
            async with clients.beside(CLIENTS):
                await answered(clients, 5 * CLIENTS)
                process.popen.send_signal(signal.SIGTERM)
                longest = max(longest, await until(process.ended, "the end"))
            assert process.exit_status() == 0
            log = [json.loads(line) for line in process.log.splitlines()]
            mentioned = {line["request_id"]: line["status"] for line in log if "status" in line}
            for answer in clients.answers:
                assert answer.status in (0, 200, 503), answer
                assert answer.sound or not answer.status, answer
                # A request that no process has logged was never accepted: nothing was listening any more.
                untaken = answer.id not in mentioned and answer.status == 0
                assert untaken or mentioned[answer.id] == answer.status, answer
            ends += clients.answers
    refused = sum(not answer.status for answer in ends)
    taken = [answer for answer in ends if answer.status]
    statuses = {str(s): sum(a.status == s for a in taken) for s in (200, 503)}
    return Terminations(rounds, {**statuses, "not connected": refused}, longest)


@dataclass(frozen=True)
class Reloads:
    reloads: int
    refused: int
    requests: dict[str, int]
    answered_by: dict[str, int]


async def reload(place: Place, rounds: int) -> Reloads:
    """Replace a bundle, every second time with a broken one; reload by route and SIGHUP in turn."""
    served = place.scratch / "reloaded"
    shutil.copytree(place.models, served)
    request = {"inputs": texts(4, 4, 12), "model": place.model, "truncate": True}
    flags = {"api-key": KEY, "cache-items": 0}
    async with (
        place.service(flags, models=served) as (process, url),
        httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=HUNG_SECONDS
        ) as client,
    ):

        async def replaced(number: int) -> bool:
            """Reload with another alpha; returns whether it was refused."""
            alpha = 1.0 if number % 4 < 2 else 0.5
            await asyncio.to_thread(rewrite, place.models, served, place.model, alpha)
            if number % 2:
                graph = served / place.model / ENCODER
                graph.write_bytes(graph.read_bytes()[:-1])
            if number % 4 in (0, 3):
                return (await client.post("/models/reload")).status_code == 409
            before = await reloads(client)
            process.popen.send_signal(signal.SIGHUP)

            async def told() -> bool:
                return await reloads(client) > before

            await until(told, "a reload")
            return bool((await client.get("/ready")).json()["refused"])

        models = []
        for number in (0, 2):
            assert not await replaced(number)
            models.append(np.array((await client.post("/embed", json=request)).json()))
        assert np.abs(models[0] - models[1]).max() > 100 * TOLERANCE
        refused = 0
        async with (
            load(url, lambda _: ("/embed", request), key=KEY, bodies=True) as clients,
            clients.beside(CLIENTS),
        ):
            for number in range(rounds):
                await answered(clients, CLIENTS)
                was_refused = await replaced(number)
                assert was_refused == bool(number % 2)
                refused += was_refused
            await answered(clients, 2 * CLIENTS)  # the last of them were sent after the reload
    check(clients.answers, 200)
    by = [0, 0]
    for answer in clients.answers:
        rows = np.array(answer.body)
        near = [bool(np.abs(rows - model).max() < TOLERANCE) for model in models]
        assert sum(near) == 1, "an answer of neither model, or of both"
        by[near.index(True)] += 1
    return Reloads(rounds, refused, clients.statuses(), {"one": by[0], "other": by[1]})


def rewrite(models: Path, served: Path, name: str, alpha: float) -> None:
    """Write the bundle to another folder with another alpha, without the golden vectors, which would refuse it."""
    card, files = bundle.read_files(models / name)
    files.pop(GOLDEN, None)
    fields = card.fields()
    bundle_writer.write(served / name, {**fields, "alpha": alpha}, files)


async def reloads(client: httpx.AsyncClient) -> float:
    """How many reloads the service has counted."""
    page = (await client.get("/metrics")).text
    lines = [line for line in page.splitlines() if line.startswith("heedful_reloads_total{")]
    return sum(float(line.split()[-1]) for line in lines)
