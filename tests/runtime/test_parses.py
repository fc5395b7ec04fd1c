"""Parses on the event loop: in slices, fair to all, once for equal texts, and alone when one fails."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence

import pytest

from heedful.runtime.engine.parses import BESIDE_SMALL, EFFORT, SHORT, TEXTS, WORDS, Parses
from heedful.runtime.engine.phases import Phases
from heedful.runtime.errors import InferenceFailed, Unavailable
from heedful.runtime.observer import Observer
from heedful.text.parse import Parse, ParseJob, Parser
from heedful.text.tokenize import MAX_CHUNK, effort
from tests.builders import BuiltParser

pytestmark = pytest.mark.anyio


class Watcher(Observer):
    def __init__(self) -> None:
        self.waiting: list[int] = []

    def queue(self, stage: str, inputs: int) -> None:
        assert stage == "parse"
        self.waiting.append(inputs)


@pytest.fixture
async def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
async def parses(built_parser: BuiltParser, watcher: Watcher) -> AsyncIterator[Parses]:
    made = Parses(0, watcher, Phases(one_core=True))
    made.start(Parser.load(built_parser.folder))
    yield made
    made.stop()


def job(text: str = "Two kids wash their hands", *, tree: bool = True) -> ParseJob:
    return ParseJob(text, 512, tree)


def same(one: Parse, other: Parse) -> bool:
    names = ("text", "tokens", "starts", "stops", "deps", "cut")
    equal = all(getattr(one, name) == getattr(other, name) for name in names)
    return equal and (one.heads == other.heads).all()


async def test_they_are_those_of_the_parser(
    parses: Parses, watcher: Watcher, parser: Parser
) -> None:
    jobs = [
        job("the dog " * (i % 9) + f"{i} is not good .", tree=i % 3 > 0) for i in range(2 * TEXTS)
    ]
    jobs += [job("word " * 500), job(" "), job("naïve 👩‍👩‍👧 \u2028 x"), job("a" * 2000)]
    asked = (jobs, jobs[::-1], jobs[:1])
    answers = await asyncio.gather(*map(parses.get, asked))
    for of, found in zip(asked, answers, strict=True):
        expected = parser.parse(of)
        assert all(same(one, other) for one, other in zip(found, expected, strict=True))
    assert watcher.waiting[-1] == 0


async def turns(parses: Parses, jobs: Sequence[ParseJob], *, alone: bool = False) -> int:
    """How often others had their turn on the event loop while these were parsed."""
    task = asyncio.create_task(parses.get(jobs, alone=alone))
    count = 0
    while not task.done():
        await asyncio.sleep(0)
        count += 1
    await task
    return count


async def test_others_go_on_between_slices(parses: Parses) -> None:
    one = await turns(parses, [job("(" * 150)])
    dear = [job("(" * 150 + str(i)) for i in range(4)]  # two of them are more than EFFORT
    assert effort(dear[0].text, 512) < EFFORT < 2 * effort(dear[0].text, 512)
    assert await turns(parses, dear) == one + 3


async def test_others_go_on_between_the_parts_of_large_calls(parses: Parses) -> None:
    one = await turns(parses, [job(f"kid {i}") for i in range(TEXTS)])  # a piece, a run
    assert await turns(parses, [job(f"kid {i}") for i in range(4 * TEXTS)]) == one + 3
    assert await turns(parses, [job(f"kid {i}") for i in range(10 * TEXTS)]) == one + 10
    long = [job(f"the dog {i} " * 64) for i in range(24)]
    assert sum(effort(each.text, 512) for each in long) < EFFORT
    runs = math.ceil(24 / (WORDS // (3 * 64)))
    assert await turns(parses, long) == one + runs - 1


async def test_a_short_text_without_a_tree_is_parsed_at_once(parses: Parses) -> None:
    assert effort("(" * SHORT, 512) <= EFFORT
    assert await turns(parses, [job("(" * SHORT, tree=False)]) == 1  # the task's first
    waits = await turns(parses, [job("(" * SHORT + ".", tree=False)])
    assert waits == await turns(parses, [job()]) > 1
    for alone in (False, True):
        other = asyncio.create_task(parses.get([job()]))
        # With the other, a round later: the first one has brought another text.
        assert await turns(parses, [job(tree=False)], alone=alone) == waits + 1
        await other
    with pytest.raises(InferenceFailed, match="the parser failed on one of the texts"):
        await parses.get([job("half a pair: \ud800", tree=False)])


async def test_so_is_a_tree_whose_request_is_the_only_one(parses: Parses) -> None:
    assert await turns(parses, [job()], alone=True) == 1
    assert await turns(parses, [job("(" * SHORT + ".")], alone=True) > 1


async def test_parts_are_short_while_small_calls_come_too(parses: Parses) -> None:
    many = [job(f"kid {i}") for i in range(4 * TEXTS)]
    alone = await turns(parses, many)  # 4 pieces and a run
    await parses.get([job()])
    texts, words = BESIDE_SMALL
    parts = len(many) // texts + 2 * len(many) // words
    assert await turns(parses, many) == alone + parts - 5


@pytest.mark.parametrize("one_core", [True, False])
async def test_large_calls_wait_while_others_are_encoded_on_the_same_core(
    built_parser: BuiltParser, one_core: bool
) -> None:
    phases = Phases(one_core)
    parses = Parses(0, Observer(), phases)
    parses.start(Parser.load(built_parser.folder))
    phases.encoding += 1
    large = asyncio.create_task(parses.get([job(f"kid {i}") for i in range(TEXTS)]))
    await parses.get([job()])  # a small one does not
    await asyncio.sleep(0.05)
    assert large.done() is not one_core
    phases.encoding -= 1
    phases.resume()
    await large
    assert not phases.parsing


async def test_a_short_call_does_not_wait_for_a_long_one(parses: Parses) -> None:
    order = []

    async def get(name: str, jobs: Sequence[ParseJob]) -> None:
        await parses.get(jobs)
        order.append(name)

    async with asyncio.TaskGroup() as calls:
        calls.create_task(get("long", [job(f"dog {i}") for i in range(4 * TEXTS)]))
        calls.create_task(get("short", [job()]))
    assert order == ["short", "long"]


async def test_jobs_of_a_cancelled_call_are_dropped(parses: Parses, watcher: Watcher) -> None:
    jobs = [job(f"dog {i}", tree=False) for i in range(20 * TEXTS)]
    cancelled = asyncio.create_task(parses.get(jobs))
    while 19 * TEXTS not in watcher.waiting:  # its first part is parsed
        await asyncio.sleep(0)
    kept = asyncio.create_task(parses.get([job()]))
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert len(await kept) == 1
    while watcher.waiting[-1]:
        await asyncio.sleep(0)
    assert min(n for n in watcher.waiting if n > 1) >= 12 * TEXTS


async def test_a_text_that_the_parser_fails_on_fails_alone_and_the_log_says_why(
    parses: Parses, caplog: pytest.LogCaptureFixture
) -> None:
    broken = asyncio.create_task(parses.get([job("half a pair: \ud800")]))  # no route lets it in
    neighbour = asyncio.create_task(parses.get([job("dog")]))
    with pytest.raises(InferenceFailed, match="the parser failed on one of the texts"):
        await broken
    assert [parse.text for parse in await neighbour] == ["dog"]
    [line] = [line for line in caplog.records if "the parser failed" in line.getMessage()]
    assert line.getMessage() == "the parser failed on a text of 14 characters"
    assert line.exc_info
    assert line.exc_info[0] is UnicodeEncodeError


async def test_so_does_one_among_the_texts_of_a_large_call(
    parses: Parses, caplog: pytest.LogCaptureFixture
) -> None:
    bad = [job(f"kid {i}") for i in range(TEXTS)] + [job("half a pair: \ud800")]
    broken = asyncio.create_task(parses.get(bad))
    neighbour = asyncio.create_task(parses.get([job(f"dog {i}") for i in range(TEXTS)]))
    with pytest.raises(InferenceFailed, match="the parser failed on one of the texts"):
        await broken
    assert [parse.text for parse in await neighbour] == [f"dog {i}" for i in range(TEXTS)]
    messages = [line.getMessage() for line in caplog.records]
    assert "the parser failed on a text of 14 characters" in messages


async def test_bulk_is_parsed_once_no_other_call_waits(parses: Parses) -> None:
    other = asyncio.create_task(parses.get([job(f"kid {i}") for i in range(TEXTS)]))
    bulk = asyncio.create_task(parses.get([job(f"dog {i}") for i in range(TEXTS)], bulk=True))
    await asyncio.sleep(0)
    other.cancel()  # bulk has seen it waiting
    assert len(await bulk) == TEXTS


async def test_stopping_answers_what_waits_and_refuses_the_rest(
    parses: Parses, watcher: Watcher
) -> None:
    begun = [job(f"dog {i}", tree=False) for i in range(2 * TEXTS)]
    waiting = asyncio.create_task(parses.get(begun))
    while TEXTS not in watcher.waiting:  # its first part is parsed
        await asyncio.sleep(0)
    parses.stop()
    with pytest.raises(Unavailable, match="shutting down"):
        await waiting
    with pytest.raises(Unavailable, match="shutting down"):
        await parses.get([job()])


def test_effort_is_quadratic_in_what_has_no_blank() -> None:
    assert effort("", 9) == effort(" \n", 9) == 0
    assert effort("two kids", 9) == 9 + 16
    assert effort("(" * MAX_CHUNK, 9) == MAX_CHUNK**2
    assert effort("(" * 9 * MAX_CHUNK, 9) == MAX_CHUNK**2  # the tokenizer gets no more of it
    assert effort("two kids " * 1000, 2) == 9 + 16
