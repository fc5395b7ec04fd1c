"""Texts -> parses, from the cache, the tokenizer in this process, or a parse process."""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence

from heedful.runtime.cache import Cache
from heedful.runtime.observer import Observer
from heedful.runtime.parse_pool import ParsePool
from heedful.text.parse import Parse, ParseJob, Tokens
from heedful.text.tokenize import effort

Key = tuple[str, int, bool]  # a ParseJob's fields: a tuple hashes ten times faster

EFFORT = 10_000
"""Limit of what is tokenized on the event loop in one go: 5 ms at worst, 2 ms for about 30 sentences.
A round trip to a parse process takes longer than tokenizing a sentence."""


class Parses:
    """Parses each text once while its parse is cached or in progress.

    Texts that need a tree, or that take long to tokenize, go to a parse process.
    """

    def __init__(self, pool: ParsePool, cache_items: int, observer: Observer) -> None:
        self._pool = pool
        self._cache: Cache[Key, Parse] = Cache("parse", cache_items, _weigh, observer)
        self._tokens: Tokens

    async def start(self, tokenizer: bytes) -> None:
        """`tokenizer` belongs to the pool's parser."""
        self._tokens = await asyncio.to_thread(Tokens, tokenizer)

    async def get(self, jobs: Sequence[ParseJob]) -> list[Parse]:
        """One parse per job, in order; equal jobs are done once. Raises what the pool raises."""

        async def make(rows: list[int]) -> list[Parse]:
            made = await self._make([jobs[row] for row in rows])
            for parse in made:  # several requests may share it
                for array in (parse.starts, parse.stops, parse.heads):
                    array.flags.writeable = False
            return made

        return await self._cache.get([(job.text, job.max_tokens, job.tree) for job in jobs], make)

    async def _make(self, jobs: Sequence[ParseJob]) -> list[Parse]:
        efforts = [0 if job.tree else effort(job.text) for job in jobs]
        if any(job.tree for job in jobs) or max(efforts, default=0) > EFFORT:
            return await self._pool.parse(jobs)
        parses: list[Parse] = []
        for group in _groups(jobs, efforts):
            if parses:
                await asyncio.sleep(0)  # let other requests run
            parses += self._tokens.parse(group)
        return parses


def _groups(jobs: Sequence[ParseJob], efforts: Iterable[int]) -> Iterator[list[ParseJob]]:
    """Groups of consecutive jobs of at most EFFORT each."""
    group: list[ParseJob] = []
    left = EFFORT
    for job, needed in zip(jobs, efforts, strict=True):
        if group and needed > left:
            yield group
            group, left = [], EFFORT
        group.append(job)
        left -= needed
    if group:
        yield group


def _weigh(job: Key, parse: Parse) -> int:
    """Approximate bytes: key and parse both hold the text; object sizes were measured. Relations' names are shared."""
    return 2 * sys.getsizeof(job[0]) + 700 + 100 * len(parse)
