"""Texts -> parses: from the cache, here, or in a parse process."""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence

from heedful.runtime.cache import Cache
from heedful.runtime.observer import Observer
from heedful.runtime.parse_pool import ParsePool
from heedful.text.parse import Parse, ParseJob, Tokens
from heedful.text.tokenize import effort

Key = tuple[str, int, bool]  # a ParseJob's fields: a tuple is hashed ten times as fast

EFFORT = 10_000
"""Of a text that is tokenized in the event loop, and of those in a row: 5 ms for the worst of them,
2 ms for some 30 sentences. To ask a parse process takes longer than to tokenize a sentence."""


class Parses:
    """Each text is parsed once, while its parse is cached or in the making.

    What needs a tree goes to a parse process, and so does a text that is long to tokenize.
    """

    def __init__(self, pool: ParsePool, cache_items: int, observer: Observer) -> None:
        self._pool = pool
        self._cache: Cache[Key, Parse] = Cache("parse", cache_items, _weigh, observer)
        self._tokens: Tokens

    async def start(self, tokenizer: bytes) -> None:
        """`tokenizer` is that of the pool's parser."""
        self._tokens = await asyncio.to_thread(Tokens, tokenizer)

    async def get(self, jobs: Sequence[ParseJob]) -> list[Parse]:
        """One parse a job, in order; equal jobs are done once. Raises what the pool raises."""

        async def make(rows: list[int]) -> list[Parse]:
            made = await self._make([jobs[row] for row in rows])
            for parse in made:  # several requests may hold it
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
                await asyncio.sleep(0)  # let the others go on
            parses += self._tokens.parse(group)
        return parses


def _groups(jobs: Sequence[ParseJob], efforts: Iterable[int]) -> Iterator[list[ParseJob]]:
    """The jobs in rows of at most EFFORT together."""
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
    """Bytes, about: key and parse each hold the text; what Python's objects need was measured."""
    return 2 * sys.getsizeof(job[0]) + 700 + 130 * len(parse)
