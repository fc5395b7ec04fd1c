"""Texts -> parses, from the cache or from the parser, which runs on the event loop in short steps.

A parse costs less than handing a text to a thread and back. The waiting texts of small calls are parsed at once, up
to a limit of work; texts that arrive meanwhile are parsed together in the next slice. Texts of large calls are taken
together, one from each in turn, because the parser is faster where it reads many of one length, and parsed in parts,
between which the event loop goes on. They wait while sentences are encoded on the same core (see `phases`). A short
text is parsed at once where no other waits and it needs no tree (that takes 10 µs, and the way over a slice as much
again) or its request is the only one.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from heedful.runtime.engine.cache import Cache
from heedful.runtime.engine.calls import Call, FairQueue, Ticket
from heedful.runtime.engine.phases import Phases
from heedful.runtime.engine.turns import Once, gathering, in_turn, turns
from heedful.runtime.errors import InferenceFailed, Unavailable
from heedful.runtime.observer import Observer
from heedful.text.parse import Parse, ParseJob, Parser
from heedful.text.tokenize import effort

log = logging.getLogger(__name__)

EFFORT = 40_000
"""Limit of the work of a slice, as `effort` counts: about 64 trees of 20 words."""
TEXTS = 64
"""Most texts of a slice."""
TOGETHER = 512
"""Texts of large calls that are parsed together, in parts: one of SNLI takes 60 µs, and 80 in a slice of TEXTS."""
WORDS = 1024
"""Most words of a part, which take 5 ms."""
BESIDE_SMALL = 16, 128
"""Texts that are tokenized, and words that are parsed, without a pause while small calls come too: below 1 ms."""
SHORT = 200
"""Characters of a text that is tokenized at once: its work is at most EFFORT."""
SMALL_SECONDS = 1.0
"""How long after a small call others are expected."""
SHUTTING_DOWN = "the service is shutting down"
FAILED = "the parser failed on one of the texts"


class Parses:
    """Parses each text once while its parse is cached or in progress. For the event loop's thread only."""

    def __init__(self, cache_items: int, observer: Observer, phases: Phases) -> None:
        self._observer, self._phases = observer, phases
        self._cache: Cache[ParseJob, Parse] = Cache("parse", cache_items, _weigh, observer)
        self._queue: FairQueue[ParseJob, Parse] = FairQueue()
        self._parser: Parser
        self._stopped = False
        self._parse_small_soon = Once(self._parse_small, gathering(self._queue.__len__, TEXTS))
        self._parse_large_in_turn = Once(
            self._parse_large, lambda step: phases.after_encoding(partial(in_turn, step))
        )
        self._small_at = -SMALL_SECONDS  # when the last small call came
        self._left: dict[int, Ticket[ParseJob, Parse]] = {}
        """Texts of large calls that are being parsed, by their places."""

    def start(self, parser: Parser) -> None:
        """Take texts, for this parser."""
        self._parser = parser

    def stop(self) -> None:
        """Refuse new texts; those that wait fail with Unavailable."""
        self._stopped = True
        for call in (*self._queue.drain(), *(ticket.call for ticket in self._left.values())):
            call.fail(Unavailable(SHUTTING_DOWN))

    async def get(
        self, jobs: Sequence[ParseJob], *, bulk: bool = False, alone: bool = False
    ) -> list[Parse]:
        """One parse per job, in order; equal jobs are done once.

        Jobs of `bulk` wait while others do; one that comes `alone` waits for no others. A cancelled call's jobs are
        dropped. Raises InferenceFailed if the parser failed on a job, Unavailable when stopped.
        """

        if self._cache.off and len(jobs) == 1:
            return await self.make(jobs, bulk, alone)

        async def make(rows: list[int]) -> list[Parse]:
            made = await self.make([jobs[row] for row in rows], bulk, alone)
            for parse in made:  # several requests may share it
                parse.heads.flags.writeable = False
            return made

        return await self._cache.get(jobs, make)

    async def pause(self) -> None:
        """Let others go on, in the middle of a long step."""
        await turns().wait()

    async def make(
        self, jobs: Sequence[ParseJob], bulk: bool = False, alone: bool = False
    ) -> list[Parse]:
        """One parse per job, past the cache."""
        if self._stopped:
            raise Unavailable(SHUTTING_DOWN)
        if len(jobs) == 1 and self._is_quick(jobs[0], bulk, alone):
            self._small_at = time.monotonic()
            [parse] = self._parse(jobs)
            if parse is None:
                raise InferenceFailed(FAILED)
            return [parse]
        call: Call[ParseJob, Parse] = Call(jobs, asyncio.get_running_loop(), bulk=bulk)
        self._queue.put(call)
        if call.small:
            self._small_at = time.monotonic()
        self._wake()
        try:
            return await call.done
        finally:
            self._queue.discard(call)
            self._wake()  # bulk may have waited for it

    def _is_quick(self, job: ParseJob, bulk: bool, alone: bool) -> bool:
        """Whether the job is short and gains nothing by waiting: trees of several texts are read faster together."""
        if len(job.text) > SHORT or self._queue:
            return False
        return alone or not (job.tree or bulk)

    def _wake(self) -> None:
        """Parse what small calls wait for once a round of the event loop brings no more; others wait for a turn."""
        self._count()
        if self._queue.has_small:
            self._parse_small_soon()
        if self._queue.has_large and not self._left:
            self._parse_large_in_turn()

    def _count(self) -> None:
        waiting = len(self._queue) + len(self._left)
        self._observer.queue("parse", waiting)
        self._phases.parsing = waiting > 0

    def _parse_small(self) -> None:
        """A slice of what small calls wait for."""
        tickets = self._queue.take(EFFORT, _effort, TEXTS, small=True)
        self._wake()  # for the next slice; what waits on the event loop comes first
        parses = self._parse([ticket.item for ticket in tickets])
        for ticket, parse in zip(tickets, parses, strict=True):
            _answer(ticket, parse)

    def _parse_large(self) -> None:
        """Take what larger calls wait for, and parse it in parts."""
        beside = time.monotonic() - self._small_at < SMALL_SECONDS
        texts, words = BESIDE_SMALL if beside else (TEXTS, WORDS)
        pieces: list[list[Ticket[ParseJob, Parse]]] = []
        while len(pieces) * texts < TOGETHER:
            tickets = self._queue.take(EFFORT * texts / TEXTS, _effort, texts, small=False)
            if not tickets:
                break
            pieces.append(tickets)
        if not pieces:  # bulk behind a small call, whose end wakes it
            return
        self._left = dict(enumerate(chain.from_iterable(pieces)))
        jobs = [[ticket.item for ticket in piece] for piece in pieces]
        self._go_on(self._parser.parts(jobs, cells=words))

    def _go_on(self, parts: Iterator[list[tuple[int, Parse]]]) -> None:
        """The next part; before the one after it others have their turns."""
        if all(ticket.call.finished for ticket in self._left.values()):  # nobody waits any more
            self._left = {}
            self._wake()
            return
        try:
            for place, parse in next(parts, ()):
                _answer(self._left.pop(place), parse)
        except Exception:  # whatever a parser raises, the callers need an answer
            log.exception("the parser failed: %d texts are parsed one by one", len(self._left))
            for ticket in self._left.values():
                _answer(ticket, *self._parse([ticket.item]))
            self._left = {}
        if self._left:
            self._count()
            in_turn(partial(self._go_on, parts))
        else:
            self._wake()

    def _parse(self, jobs: Sequence[ParseJob]) -> Sequence[Parse | None]:
        """One parse per job, None if the parser failed on it: a bad job fails alone."""
        try:
            return self._parser.parse(jobs)
        except Exception:  # whatever a parser raises, the callers need an answer
            if len(jobs) == 1:
                log.exception("the parser failed on a text of %d characters", len(jobs[0].text))
                return [None]
            return [parse for job in jobs for parse in self._parse([job])]


def _effort(job: ParseJob) -> int:
    return effort(job.text, job.max_tokens)


def _answer(ticket: Ticket[ParseJob, Parse], parse: Parse | None) -> None:
    """None is of a text that the parser failed on."""
    if parse is None:
        ticket.call.fail(InferenceFailed(FAILED))
    else:
        ticket.call.put(ticket.row, parse)


def _weigh(job: ParseJob, parse: Parse) -> int:
    """Approximate bytes: key and parse both hold the text. Objects were measured, `starts` and `stops` among them.

    Relations' names are shared.
    """
    return 2 * sys.getsizeof(job.text) + 350 + 100 * len(parse)
