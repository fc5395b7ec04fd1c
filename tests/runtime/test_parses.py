"""Which texts are tokenized here, and which go to a parse process: told by a pool that stands still."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from heedful.runtime.observer import Observer
from heedful.runtime.parse_pool import ParsePool
from heedful.runtime.parses import EFFORT, Parses, _groups
from heedful.text.parse import ParseJob, Parser
from heedful.text.tokenize import MAX_RUN, effort
from tests.builders import BuiltParser

pytestmark = pytest.mark.anyio

PATIENCE = 60.0


@pytest.fixture(scope="module")
async def stalled(built_parser: BuiltParser) -> AsyncIterator[tuple[Parses, int]]:
    """Parses without a cache, and the id of their parse process, which is stopped."""
    pool = ParsePool(built_parser.folder, 1)
    parses = Parses(pool, 0, Observer())
    await parses.start((await pool.start()).tokenizer)
    [pid] = pool.pids
    os.kill(pid, signal.SIGSTOP)
    yield parses, pid
    await pool.stop()


async def test_sentences_without_a_tree_need_no_process(
    stalled: tuple[Parses, int], parser: Parser
) -> None:
    parses, _ = stalled
    jobs = [ParseJob(f"Two kids wash their hands, {i} times.", 16, tree=False) for i in range(512)]
    async with asyncio.timeout(PATIENCE):
        got = await parses.get(jobs)
    for made, expected in zip(got, parser.parse(jobs), strict=True):
        assert (made.text, made.tokens) == (expected.text, expected.tokens)
        assert made.starts.tolist() == expected.starts.tolist()
        assert made.heads.tolist() == expected.heads.tolist()


@pytest.mark.parametrize(
    "job",
    [
        ParseJob("Two kids", 16, tree=True),
        ParseJob("(" * MAX_RUN, 512, tree=False),  # 100 ms of spaCy
        ParseJob("Two kids wash their hands. " * 100, 16, tree=False),
    ],
    ids=["tree", "long run", "long text"],
)
async def test_what_is_dear_goes_to_a_process(
    stalled: tuple[Parses, int], parser: Parser, job: ParseJob
) -> None:
    parses, pid = stalled
    task = asyncio.create_task(parses.get([job]))
    done, _ = await asyncio.wait([task], timeout=0.2)
    assert not done
    os.kill(pid, signal.SIGCONT)
    async with asyncio.timeout(PATIENCE):
        (made,) = await task
    os.kill(pid, signal.SIGSTOP)
    (expected,) = parser.parse([job])
    assert (made.tokens, made.deps) == (expected.tokens, expected.deps)


def test_others_go_on_between_groups_of_texts() -> None:
    jobs = [ParseJob("a" * length, 16, tree=False) for length in (60, 70, 60, 98, 10, 10)]
    groups = list(_groups(jobs, [effort(job.text) for job in jobs]))
    assert [job for group in groups for job in group] == jobs
    assert all(sum(effort(job.text) for job in group) <= EFFORT for group in groups)
    assert [len(group) for group in groups] == [2, 1, 3]


def test_effort_is_quadratic_in_what_has_no_blank() -> None:
    assert effort("") == effort(" \n") == 0
    assert effort("two kids") == 9 + 16
    assert effort("(" * 500) == 250_000
