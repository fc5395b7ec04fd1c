"""Strict clients during kills and stops: every byte that they receive belongs to a right answer to their requests.

Each client speaks HTTP over sockets, so that no library hides a wrong answer: it sends one to six requests at
once, each with a text that no other client sends, reads as many answers, in order, and sometimes disconnects between.
Afterwards every answer is compared with that of `heedful.load`.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import orjson

import heedful
from benchmarks.soak.load import until
from benchmarks.soak.scenarios import TOLERANCE, Place, told
from tests.builders import WORDS
from tests.process import Process

ROUTES = ("/embed", "/v1/embeddings", "/classify", "/tokenize")
MOST_AT_ONCE = 6
ABORTS = 0.03
"""Share of the times that a client disconnects after sending requests."""
HANG_SECONDS = 2
BEFORE, AFTER = 1.0, 3.0
"""Seconds around the log's line of a process that has ended, in which its clients see that."""


@dataclass(frozen=True)
class Chaos:
    clients: int
    seconds: float
    kills: int
    stops: int
    processes_that_ended: int
    requests: dict[str, int]
    aborted_by_clients: int
    connections_broken_by_their_end: int
    answers_compared: int
    largest_difference: float


@dataclass
class _Run:
    """The clients' requests and answers."""

    model: str
    port: int
    ends: float
    answers: list[tuple[str, str, Any]] = field(default_factory=list)  # route, text, body
    statuses: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[float, float]] = field(default_factory=list)  # connected, broken
    aborted: int = 0
    sent: set[str] = field(default_factory=set)

    def text(self, rng: random.Random) -> str:
        """A text that has not been sent."""
        while True:
            text = " ".join(rng.choices(WORDS, k=rng.randint(6, 12)))
            if text not in self.sent:
                self.sent.add(text)
                return text

    def request(self, route: str, text: str, id: str) -> bytes:
        name = "input" if route == "/v1/embeddings" else "inputs"
        body = orjson.dumps({name: text, "model": self.model})
        head = f"POST {route} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Request-Id: {id}\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def client(self, number: int) -> None:
        rng = random.Random(number)
        turn = 0
        while time.monotonic() < self.ends:
            connected = time.monotonic()
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    while time.monotonic() < self.ends:
                        turn += 1
                        if not await self._ask(reader, writer, rng, f"{number}-{turn}"):
                            break
                finally:
                    writer.close()
            except (OSError, asyncio.IncompleteReadError):
                self.broken.append((connected, time.monotonic()))

    async def _ask(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        rng: random.Random,
        name: str,
    ) -> bool:
        """Send requests and read their answers in order; returns whether the connection stays open."""
        requests = [
            (rng.choice(ROUTES), self.text(rng), f"{name}-{i}")
            for i in range(rng.randint(1, MOST_AT_ONCE))
        ]
        writer.write(b"".join([self.request(*request) for request in requests]))
        if rng.random() < ABORTS:
            await asyncio.sleep(rng.random() / 20)
            writer.transport.abort()
            self.aborted += 1
            return False
        for route, text, id in requests:
            status, headers, body = await _answer(reader)
            assert headers["x-request-id"] == id, "an answer to another request"
            assert status in (200, 503), (status, body)
            self.statuses[str(status)] += 1
            answer = orjson.loads(body)
            if status == 200:
                self.answers.append((route, text, answer))
            else:
                assert answer["error"]["message"]
            if headers.get("connection") == "close":
                assert await reader.read() == b"", "more than the last answer"
                return False
        return True


async def _answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body. Raises IncompleteReadError where the connection ends before."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
    first, *lines = head.split("\r\n")[:-2]
    version, status, _ = first.split(" ", 2)
    assert version == "HTTP/1.1", "bytes that nobody has asked for"
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    assert len(headers) == len(lines)
    return int(status), headers, await reader.readexactly(int(headers["content-length"]))


async def chaos(place: Place, seconds: float, clients: int = 64) -> Chaos:
    """Kills and stops in turn. A connection may break where a process ended, and nothing else may go wrong."""
    flags = {"hang-timeout": HANG_SECONDS, "cache-items": 64}
    async with place.service(flags) as (process, url):
        run = _Run(place.model, int(url.rpartition(":")[2]), time.monotonic() + seconds)
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(run.client(number))
            kills, stops = await _faults(process, url, run.ends)
        assert "Traceback" not in process.log
        ends = _ends(process.log)
    unexplained = [
        (connected, broken)
        for connected, broken in run.broken
        if not any(end - BEFORE < broken < end + AFTER and connected < end + AFTER for end in ends)
    ]
    assert not unexplained, (unexplained, ends)
    assert kills <= len(ends)
    assert len(run.broken) <= clients * len(ends)
    difference = await asyncio.to_thread(_largest_difference, place, run.answers)
    assert difference < TOLERANCE
    return Chaos(
        clients,
        seconds,
        kills,
        stops,
        len(ends),
        dict(run.statuses),
        run.aborted,
        len(run.broken),
        len(run.answers),
        difference,
    )


def _ends(log: str) -> list[float]:
    """When serving processes have ended, on the clock of time.monotonic."""
    lines = [orjson.loads(line) for line in log.splitlines()]
    offset = time.time() - time.monotonic()
    return [
        datetime.fromisoformat(line["time"]).timestamp() - offset
        for line in lines
        if "has ended with status" in line["message"]
    ]


async def _faults(process: Process, url: str, ends: float) -> tuple[int, int]:
    """A kill, a stop that is too long, a short one, and again; how many of the first, and of the others."""
    rng, kills, stops = random.Random(0), 0, 0
    while time.monotonic() < ends:
        await asyncio.sleep(min(1.0, max(0.0, ends - time.monotonic())))
        pid = rng.choice(process.servers())
        if (kills + stops) % 3 == 0:
            os.kill(pid, signal.SIGKILL)
            kills += 1
        else:
            os.kill(pid, signal.SIGSTOP)
            stops += 1
            if (kills + stops) % 3 == 0:
                await asyncio.sleep(HANG_SECONDS / 8)
                os.kill(pid, signal.SIGCONT)

        async def back() -> bool:
            return len(process.servers()) == 2 and await told(url, 200)

        await until(back, "both processes")
    return kills, stops


def _largest_difference(place: Place, answers: list[tuple[str, str, Any]]) -> float:
    """The largest difference of the answers' numbers from the library's. Raises AssertionError for wrong tokens."""
    by_route = {
        route: [(text, body) for r, text, body in answers if r == route] for route in ROUTES
    }
    largest = 0.0
    with heedful.load(place.model, models=place.models) as model:
        rows = [(text, body[0]) for text, body in by_route["/embed"]]
        rows += [(text, body["data"][0]["embedding"]) for text, body in by_route["/v1/embeddings"]]
        if rows:
            texts, vectors = zip(*rows, strict=True)
            largest = float(np.abs(model.encode(list(texts)) - np.array(vectors)).max())
        if by_route["/classify"]:
            texts, bodies = zip(*by_route["/classify"], strict=True)
            expected = model.predict_proba(list(texts))
            by_label = [{each["label"]: each["score"] for each in body} for body in bodies]
            scores = np.array([[row[label] for label in model.card.labels] for row in by_label])
            largest = max(largest, float(np.abs(scores - expected).max()))
    for text, body in by_route["/tokenize"]:
        assert [token["text"] for token in body[0]] == text.split()
    return largest
