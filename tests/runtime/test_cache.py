"""The cache: its bounds, and one computation for many callers, whatever becomes of the first."""

import asyncio
import pickle
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.runtime.engine import cache as caches
from heedful.runtime.engine.cache import Cache
from heedful.runtime.engine.parses import _weigh
from heedful.runtime.errors import Unavailable
from heedful.runtime.observer import Observer
from heedful.runtime.service import Options, Service
from heedful.text.parse import Parse, ParseJob, Parser
from tests.asking import embed, tokenize

pytestmark = pytest.mark.anyio

PATIENCE = 20.0
"""Seconds until a test that would hang fails instead."""


class Watcher(Observer):
    def __init__(self) -> None:
        self.hits = self.misses = 0

    def cache(self, name: str, hits: int, misses: int) -> None:
        self.hits += hits
        self.misses += misses


class Maker:
    """Doubles integers when released. Counts what it made."""

    def __init__(self, *, held: bool = False) -> None:
        self.made: list[int] = []
        self.go = asyncio.Event()
        self.fails = 0  # how many of the next calls fail
        if not held:
            self.go.set()

    async def get(self, cache: Cache[int, int], keys: Sequence[int]) -> list[int]:
        async def make(rows: list[int]) -> list[int]:
            self.made += [keys[row] for row in rows]
            await self.go.wait()
            if self.fails:
                self.fails -= 1
                raise Unavailable("a fault")
            return [2 * keys[row] for row in rows]

        return await cache.get(keys, make)


def cache_of(items: int, watcher: Observer | None = None, limit: int = 10**9) -> Cache[int, int]:
    return Cache("parse", items, lambda key, value: key, watcher or Observer(), limit=limit)


async def test_what_is_kept_is_not_made_again() -> None:
    watcher, maker = Watcher(), Maker()
    cache = cache_of(10, watcher)
    assert await maker.get(cache, [3, 1, 3, 2]) == [6, 2, 6, 4]
    assert await maker.get(cache, [1, 4, 3]) == [2, 8, 6]
    assert maker.made == [3, 1, 2, 4]
    assert (watcher.hits, watcher.misses) == (2, 4)
    assert await maker.get(cache, []) == []


async def test_the_least_recently_used_goes_first() -> None:
    maker = Maker()
    cache = cache_of(3)
    await maker.get(cache, [1, 2, 3])
    await maker.get(cache, [1])
    await maker.get(cache, [4])  # 2 goes
    await maker.get(cache, [3, 1, 4])
    assert maker.made == [1, 2, 3, 4]
    await maker.get(cache, [2])
    assert maker.made == [1, 2, 3, 4, 2]


@settings(max_examples=200)
@given(
    st.integers(0, 5),
    st.integers(1, 60),
    st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=8), max_size=20),
)
def test_the_bounds_hold_and_answers_are_right(
    items: int, limit: int, calls: list[list[int]]
) -> None:
    async def scenario() -> None:
        watcher, maker = Watcher(), Maker()
        cache = cache_of(items, watcher, limit)
        for keys in calls:
            assert await maker.get(cache, keys) == [2 * key for key in keys]
            assert len(cache) <= items
            assert 0 <= cache.bytes <= limit
        assert watcher.misses == (len(maker.made) if items else 0)
        assert watcher.hits + watcher.misses == (sum(len(set(k)) for k in calls) if items else 0)

    asyncio.run(scenario())


async def test_equal_keys_in_flight_are_made_once() -> None:
    watcher, maker = Watcher(), Maker(held=True)
    cache = cache_of(10, watcher)
    async with asyncio.timeout(PATIENCE):
        calls = [asyncio.create_task(maker.get(cache, [7, key])) for key in (7, 1, 2)]
        await asyncio.sleep(0)
        maker.go.set()
        assert await asyncio.gather(*calls) == [[14, 14], [14, 2], [14, 4]]
    assert maker.made == [7, 1, 2]
    assert (watcher.hits, watcher.misses) == (2, 3)


async def test_a_small_call_does_not_wait_for_a_large_one() -> None:
    large, small = Maker(held=True), Maker()
    cache = cache_of(10)
    async with asyncio.timeout(PATIENCE):
        first = asyncio.create_task(large.get(cache, [1, 2, 3]))
        await asyncio.sleep(0)
        assert await small.get(cache, [2]) == [4]
        large.go.set()
        assert await first == [2, 4, 6]
    assert cache.bytes == 1 + 2 + 3  # 2 is kept once


@pytest.mark.parametrize("end", ["cancelled", "failed"])
async def test_a_leader_that_ends_without_a_value_takes_no_follower_with_it(end: str) -> None:
    maker = Maker(held=True)
    cache = cache_of(10)
    async with asyncio.timeout(PATIENCE):
        leader = asyncio.create_task(maker.get(cache, [7]))
        await asyncio.sleep(0)
        followers = [asyncio.create_task(maker.get(cache, [7])) for _ in range(3)]
        await asyncio.sleep(0)
        assert maker.made == [7]
        if end == "cancelled":
            leader.cancel()
        else:
            maker.fails = 1
        maker.go.set()
        answers = await asyncio.gather(leader, *followers, return_exceptions=True)
    expected = asyncio.CancelledError if end == "cancelled" else Unavailable
    assert isinstance(answers[0], expected)
    assert answers[1:] == [[14]] * 3
    assert await maker.get(cache, [7]) == [14]


async def test_a_follower_that_is_cancelled_takes_nobody_with_it() -> None:
    maker = Maker(held=True)
    cache = cache_of(10)
    async with asyncio.timeout(PATIENCE):
        calls = [asyncio.create_task(maker.get(cache, [7])) for _ in range(3)]
        await asyncio.sleep(0)
        calls[1].cancel()
        await asyncio.wait([calls[1]])
        maker.go.set()
        assert [await calls[0], await calls[2]] == [[14], [14]]
    assert maker.made == [7]


async def test_off_means_off() -> None:
    watcher, maker = Watcher(), Maker(held=True)
    cache = cache_of(0, watcher)
    calls = [asyncio.create_task(maker.get(cache, [7, 7])) for _ in range(2)]
    await asyncio.sleep(0)
    maker.go.set()
    assert await asyncio.gather(*calls) == [[14, 14]] * 2
    assert maker.made == [7, 7]  # once a call
    assert (len(cache), watcher.hits, watcher.misses) == (0, 0, 0)


async def test_a_fault_is_not_kept() -> None:
    maker = Maker()
    maker.fails = 1
    cache = cache_of(10)
    with pytest.raises(Unavailable):
        await maker.get(cache, [7])
    assert await maker.get(cache, [7]) == [14]
    assert maker.made == [7, 7]
    assert cache.pending == 0


def test_a_parse_weighs_what_it_needs(parser: Parser) -> None:
    texts = [f"the dog {i} washes naïve hands of {'x' * i}" for i in range(400)]
    texts.append("kid " * 20_000)
    jobs = [ParseJob(text, 50, tree=True) for text in texts]
    parses = parser.parse(jobs)
    assert all(len(parse.starts) == len(parse.stops) for parse in parses)  # kept from now on
    answer = pickle.dumps(parses)
    tracemalloc.start()
    try:
        copies: list[Parse] = pickle.loads(answer)
        needed, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    counted = sum(_weigh(job, parse) for job, parse in zip(jobs, copies, strict=True))
    counted -= sum(len(text) for text in texts)  # the jobs' own texts are not in the copies
    assert 0.7 < needed / counted < 1.4


@pytest.mark.parametrize("items", [0, 100])
async def test_the_service_answers_the_same_with_and_without(models: Path, items: int) -> None:
    texts = ["Two kids wash their hands", "the dog is not good .", "dog"]
    watcher = Watcher()
    service = Service(Options(models, threads=1, cache_items=items), watcher)
    await service.start()
    try:
        first = await embed(service, texts, model="tiny-sst2")
        expected = first.value.copy()
        first.value[:] = np.nan  # an answer belongs to the caller
        again = await embed(service, texts[::-1], model="tiny-sst2")
        np.testing.assert_allclose(again.value[::-1], expected, rtol=0, atol=1e-6)
        other = await embed(service, texts, model="tiny-nli")
        assert np.abs(other.value).max() > 0
        assert (again.tokens, again.truncated) == (first.tokens, 0)
        assert watcher.misses == (9 if items else 0)  # parses: 3; vectors: 3 of each model
        assert watcher.hits == (9 if items else 0)
        (tokens,) = (await tokenize(service, texts[:1])).value
        if items:
            with pytest.raises(ValueError, match="read-only"):
                tokens.parse.heads[0] = 9
    finally:
        await service.stop(timeout=1)


def test_the_bound_is_what_the_help_says() -> None:
    from heedful.app.settings import help_text

    assert f"{caches.BYTES // 2**20} MiB" in help_text("cache_items")
