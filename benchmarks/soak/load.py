"""Load-generating clients that record how each request ended."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

import aiohttp
import orjson

HUNG_SECONDS = 120.0
"""A request that has no answer by then counts as hung."""
SYLLABLES = ("ka", "lo", "mi", "ner", "tu", "sha", "vor", "ze", "ping", "ou")
FAMILIAR = ("the", "kids", "wash", "their", "hands", "a", "dog", "is", "not", "good", ".", ",")

Body = dict[str, Any]
Ask = Callable[[int], tuple[str, Body]]
"""Number of the request -> path and body."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a request ended. `status` is 0 without a complete answer; `error` then says why."""

    id: str
    status: int
    sound: bool  # an answer if the status is 200, else the envelope
    seconds: float
    sent: float  # on the clock of time.monotonic
    error: str = ""
    body: Any = None  # when bodies are kept


class Load:
    """Clients of one service, with one connection per request in flight."""

    def __init__(self, session: aiohttp.ClientSession, ask: Ask, *, bodies: bool) -> None:
        self._bodies = bodies
        self._session = session
        self._ask = ask
        self._numbers = count()
        self.answers: list[Answer] = []

    async def one(self) -> Answer:
        """Send the next request and record how it ends."""
        number = next(self._numbers)
        path, body = self._ask(number)
        id = f"request-{number}"
        sent = time.monotonic()
        status, answer, sound, error = 0, None, False, ""
        try:
            async with self._session.post(
                path, json=body, headers={"X-Request-Id": id}
            ) as response:
                answer = orjson.loads(await response.read())
                status = response.status
                sound = (isinstance(answer, dict) and "error" in answer) == (status != 200)
        except (aiohttp.ClientError, OSError, TimeoutError, orjson.JSONDecodeError) as failed:
            error = type(failed).__name__
        seconds = time.monotonic() - sent
        body_kept = answer if self._bodies else None
        result = Answer(id, status, sound, seconds, sent, error, body_kept)
        self.answers.append(result)
        return result

    async def closed(self, clients: int, going: Callable[[], bool]) -> None:
        """Clients that each send the next request when they have the last answer."""

        async def client() -> None:
            while going():
                if (await self.one()).error:
                    await asyncio.sleep(0.05)  # nothing is listening

        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(client())

    async def open(self, rate: float, seconds: float) -> None:
        """Send `rate` requests a second, whether or not earlier ones were answered."""
        async with asyncio.TaskGroup() as group:
            started = time.monotonic()
            for number in range(int(rate * seconds)):
                await asyncio.sleep(started + number / rate - time.monotonic())
                group.create_task(self.one())

    @asynccontextmanager
    async def beside(self, clients: int) -> AsyncIterator[None]:
        """Run clients inside the context; on exit all have their answers."""
        going = True
        task = asyncio.create_task(self.closed(clients, lambda: going))
        try:
            yield
        finally:
            going = False
            await task

    def statuses(self) -> dict[str, int]:
        """Number of requests by status, or by the error that broke the connection."""
        ends = Counter(str(answer.status or answer.error) for answer in self.answers)
        return dict(sorted(ends.items()))


@asynccontextmanager
async def load(
    url: str, ask: Ask, *, connections: int = 0, key: str = "", bodies: bool = False
) -> AsyncIterator[Load]:
    """Clients of the service at `url`; `connections` limits theirs, 0 does not.

    Bodies are always parsed, and kept if `bodies` is set.
    """
    async with aiohttp.ClientSession(
        url,
        headers={"Authorization": f"Bearer {key}"} if key else None,
        connector=aiohttp.TCPConnector(limit=connections),
        timeout=aiohttp.ClientTimeout(total=HUNG_SECONDS),
    ) as session:
        yield Load(session, ask, bodies=bodies)


async def until(condition: Callable[[], Awaitable[bool] | bool], what: str) -> float:
    """Wait until the condition holds; returns the seconds waited."""
    started = time.monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(HUNG_SECONDS):
            while True:
                met = condition()
                if met if isinstance(met, bool) else await met:
                    return time.monotonic() - started
                await asyncio.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


def words(seed: int) -> Iterator[str]:
    """An endless stream of words, half of them new."""
    rng = random.Random(seed)
    while True:
        if rng.random() < 0.5:
            yield rng.choice(FAMILIAR)
        else:
            yield "".join(rng.choices(SYLLABLES, k=rng.randint(1, 5)))


def texts(seed: int, number: int, longest: int = 60) -> list[str]:
    """Texts of one to `longest` words."""
    rng, new = random.Random(seed), words(seed)
    return [" ".join(next(new) for _ in range(rng.randint(1, longest))) for _ in range(number)]


def embeds(model: str, number: int) -> Ask:
    """Requests to embed so many texts, each time others."""

    def ask(seed: int) -> tuple[str, Body]:
        return "/embed", {"inputs": texts(seed, number, 20), "model": model, "truncate": True}

    return ask


def mixed(seed: int, models: dict[str, str]) -> Ask:
    """Requests of every kind that the models (name -> kind) answer, each with new words."""

    def ask(number: int) -> tuple[str, Body]:
        rng = random.Random(seed + number)
        model, kind = rng.choice(sorted(models.items()))
        inputs = texts(seed + number, rng.choice((1, 1, 2, 8)), rng.choice((8, 40, 300)))
        body: Body = {"model": model, "truncate": True}
        routes = ["/embed", "/tokenize"]
        if kind == "nli" and rng.random() < 0.5:
            pairs = [{"premise": text, "hypothesis": text} for text in inputs]
            return "/nli", {**body, "pairs": pairs}
        if kind == "classification":
            routes.append("/classify")
        return rng.choice(routes), {**body, "inputs": inputs}

    return ask
