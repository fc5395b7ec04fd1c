"""The pool with real processes, which are stopped and killed from outside."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import spacy

from heedful.runtime import parse_pool
from heedful.runtime.errors import InferenceFailed, StartupError, Unavailable
from heedful.runtime.observer import Observer
from heedful.runtime.parse_pool import GROUP, ParsePool
from heedful.text.parse import Parse, ParseJob, Parser
from tests.builders import BuiltParser

pytestmark = pytest.mark.anyio

ROOT = str(Path(__file__).parents[2])
PATIENCE = 60.0
"""Seconds until a test that would hang fails instead."""
TEXT = "Two kids wash their hands"


class Watcher(Observer):
    def __init__(self) -> None:
        self.states: dict[str, int] = {}
        self.waiting = 0

    def worker(self, kind: str, state: str, n: int) -> None:
        assert kind == "parse"
        self.states[state] = n

    def queue(self, stage: str, inputs: int) -> None:
        assert stage == "parse"
        self.waiting = inputs


def job(text: str = TEXT, tree: bool = True) -> ParseJob:
    return ParseJob(text, 100, tree)


def same(one: Parse, other: Parse) -> bool:
    return (one.text, one.tokens, one.deps, one.cut) == (
        *(other.text, other.tokens, other.deps, other.cut),
    ) and all(
        (getattr(one, name) == getattr(other, name)).all() for name in ("starts", "stops", "heads")
    )


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.sleep(0)  # tasks that were just made get their turn first
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)


def gone(pid: int) -> bool:
    """Whether no process of that id runs; one that only waits to be reaped counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@asynccontextmanager
async def pool_of(
    count: int, pipeline: Path, watcher: Watcher | None = None
) -> AsyncIterator[ParsePool]:
    pool = ParsePool(pipeline, count, watcher)
    await pool.start()
    try:
        yield pool
    finally:
        await pool.stop()


@pytest.fixture(scope="module")
async def shared(built_parser: BuiltParser) -> AsyncIterator[ParsePool]:
    async with pool_of(1, built_parser.folder) as pool:
        yield pool


@pytest.fixture
async def pool(shared: ParsePool) -> ParsePool:
    """A pool of one process, up again where the test before has killed it."""
    await until(lambda: shared.alive == 1)
    return shared


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacement without the long waits."""
    monkeypatch.setattr(parse_pool, "FIRST_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(parse_pool, "LAST_BACKOFF_SECONDS", 0.05)


async def test_it_parses_as_the_parser_does(built_parser: BuiltParser, parser: Parser) -> None:
    jobs = [job("the dog " * i + "is not good .", tree=i % 3 > 0) for i in range(2 * GROUP + 5)]
    jobs += [job("word " * 500), job(" "), job("naïve 👩‍👩‍👧 \u2028 x"), job("a" * 2000)]
    watcher = Watcher()
    pool = ParsePool(built_parser.folder, 2, watcher)
    assert pool.alive == 0
    loaded = await pool.start()
    assert (loaded.name, loaded.fingerprint) == (parser.name, parser.fingerprint)
    assert (pool.alive, pool.wanted, len(set(pool.pids))) == (2, 2, 2)
    answers = await asyncio.gather(pool.parse(jobs), pool.parse(jobs[::-1]), pool.parse(jobs[:1]))
    for asked, parses in zip((jobs, jobs[::-1], jobs[:1]), answers, strict=True):
        expected = parser.parse(asked)
        assert all(same(one, other) for one, other in zip(parses, expected, strict=True))
    assert watcher.states == {"ready": 2, "starting": 0, "down": 0}
    assert watcher.waiting == 0
    pids = pool.pids
    await pool.stop()
    assert all(map(gone, pids))
    with pytest.raises(Unavailable, match="shutting down"):
        await pool.parse([job()])


async def test_a_process_loads_the_parser_alone(
    pool: ParsePool,
) -> None:
    await pool.parse([job()])
    (pid,) = pool.pids
    libraries = Path(f"/proc/{pid}/maps").read_text()
    assert "spacy" in libraries
    assert "onnxruntime" not in libraries
    assert "pydantic_core" in libraries  # spaCy's own need; the assertion above is not vacuous


@pytest.mark.parametrize("what", ["no_such_pipeline", "blank"])
async def test_a_pipeline_that_does_not_load_is_an_error_at_the_start(
    tmp_path: Path, what: str
) -> None:
    import spacy

    reason = "cannot load the spaCy pipeline 'no_such_pipeline'"
    if what == "blank":
        what = str(tmp_path / "blank")
        spacy.blank("en").to_disk(what)
        reason = "has no dependency parser"
    pool = ParsePool(what, 2)
    with pytest.raises(StartupError, match=reason):
        await pool.start()
    assert pool.pids == []


@pytest.mark.usefixtures("quick")
async def test_what_a_killed_process_had_in_hand_is_parsed_by_another(
    built_parser: BuiltParser, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = Watcher()
    async with pool_of(2, built_parser.folder, watcher) as pool:
        first, second = pool.pids
        os.kill(first, signal.SIGSTOP)
        os.kill(second, signal.SIGSTOP)
        # Each of the two takes one call's job; both stand still with it.
        calls = [asyncio.create_task(pool.parse([job(f"dog {i}")])) for i in range(2)]
        await until(lambda: pool.waiting == 0)
        os.kill(first, signal.SIGKILL)
        await until(lambda: pool.waiting == 1)  # at once
        os.kill(second, signal.SIGCONT)
        parses = [parse.text for answer in await asyncio.gather(*calls) for parse in answer]
        assert parses == ["dog 0", "dog 1"]
        assert "died with 1 jobs in flight: exit code -9" in caplog.text
        await until(lambda: pool.alive == 2)
        assert first not in pool.pids
        assert len(await pool.parse([job()] * 80)) == 80
        await until(lambda: watcher.states == {"ready": 2, "starting": 0, "down": 0})


@pytest.mark.usefixtures("quick")
async def test_an_idle_process_that_dies_is_noticed_and_replaced_without_a_loss(
    pool: ParsePool,
) -> None:
    for _ in range(2):
        (pid,) = pool.pids
        os.kill(pid, signal.SIGKILL)
        await until(lambda: pool.alive == 0)
        parses = await pool.parse([job()])  # waits for the new one
        assert parses[0].tokens == tuple(TEXT.split())
        assert pool.pids != [pid]


@pytest.mark.usefixtures("quick")
async def test_a_process_that_hangs_is_killed(
    pool: ParsePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pid,) = pool.pids
    os.kill(pid, signal.SIGSTOP)
    with monkeypatch.context() as impatient:
        impatient.setattr("heedful.runtime.parse_process.ANSWER_SECONDS", 0.2)
        parsed = asyncio.create_task(pool.parse([job()]))
        await until(lambda: gone(pid))
    assert len(await parsed) == 1


@pytest.fixture(scope="module")
def poisoned(built_parser: BuiltParser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parser whose tokenizer never comes back from a long word of a's: its process is ended."""
    nlp = spacy.load(built_parser.folder)
    tokenizer: Any = nlp.tokenizer
    tokenizer.token_match = re.compile(r"(?:a|a)+$").match
    nlp.to_disk(folder := tmp_path_factory.mktemp("poisoned") / "parser")
    return folder


async def test_a_text_that_the_parser_fails_on_fails_alone_and_the_log_says_why(
    pool: ParsePool, caplog: pytest.LogCaptureFixture
) -> None:
    broken = asyncio.create_task(pool.parse([job("half a pair: \ud800")]))  # no route lets it in
    neighbour = asyncio.create_task(pool.parse([job("dog")]))
    with pytest.raises(InferenceFailed, match="the parser failed on one of the texts"):
        await broken
    assert [parse.text for parse in await neighbour] == ["dog"]
    [line] = [line for line in caplog.records if "the parser failed" in line.getMessage()]
    assert line.getMessage() == "the parser failed on a text of 14 characters"
    assert "UnicodeEncodeError" in vars(line)["exception"]


@pytest.mark.usefixtures("quick")
async def test_a_text_that_kills_is_tried_twice_and_kills_no_neighbour(
    poisoned: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("heedful.runtime.parse_process.ANSWER_SECONDS", 3.0)
    async with pool_of(1, poisoned) as pool:
        (pid,) = pool.pids
        os.kill(pid, signal.SIGSTOP)
        held = asyncio.create_task(pool.parse([job()]))  # so that what follows goes together
        await until(lambda: pool.waiting == 0)
        poison = asyncio.create_task(pool.parse([job("a" * 60 + "!")]))
        neighbours = [asyncio.create_task(pool.parse([job("dog"), job("kid")])) for _ in range(3)]
        await until(lambda: pool.waiting == 7)
        os.kill(pid, signal.SIGCONT)
        with pytest.raises(Unavailable, match="two parse processes died"):
            await poison
        for answer in await asyncio.gather(*neighbours):
            assert [parse.text for parse in answer] == ["dog", "kid"]
        assert len(await held) == 1
        await until(lambda: pool.alive == 1)
        assert caplog.text.count("a parse process died") == 2
        assert not pool.down


@pytest.mark.usefixtures("quick")
async def test_crashes_without_end_are_a_clear_state_and_one_that_heals(
    tmp_path: Path,
    built_parser: BuiltParser,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(parse_pool, "FAILURES", 2)
    pipeline = tmp_path / "parser"
    shutil.copytree(built_parser.folder, pipeline)
    watcher = Watcher()
    async with pool_of(1, pipeline, watcher) as pool:
        (pid,) = pool.pids
        pipeline.rename(tmp_path / "away")
        os.kill(pid, signal.SIGKILL)
        await until(lambda: pool.alive == 0)
        waiting = asyncio.create_task(pool.parse([job()]))
        with pytest.raises(Unavailable, match="no parse process comes up"):
            await waiting
        with pytest.raises(Unavailable, match="no parse process comes up"):
            await pool.parse([job()])
        assert watcher.states == {"ready": 0, "starting": 0, "down": 1}
        assert pool.down
        assert "cannot load the spaCy pipeline" in caplog.text
        (tmp_path / "away").rename(pipeline)
        await until(lambda: pool.alive == 1)
        assert len(await pool.parse([job()])) == 1
        assert not pool.down


async def test_stopping_a_start_does_not_wait_for_it(built_parser: BuiltParser) -> None:
    pool = ParsePool(built_parser.folder, 1)
    start = asyncio.create_task(pool.start())
    await until(lambda: len(pool.pids) == 1)
    (pid,) = pool.pids
    os.kill(pid, signal.SIGSTOP)  # it would never come up
    start.cancel()
    await asyncio.wait([start])
    assert gone(pid)
    assert pool.pids == []


@pytest.mark.usefixtures("quick")
async def test_another_parser_than_at_the_start_is_not_let_in(
    tmp_path: Path, built_parser: BuiltParser, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = tmp_path / "parser"
    shutil.copytree(built_parser.folder, pipeline)
    async with pool_of(1, pipeline) as pool:
        (pipeline / "note.txt").write_text("changes the fingerprint")
        os.kill(pool.pids[0], signal.SIGKILL)
        await until(lambda: "not the one that was started with" in caplog.text)
        assert pool.alive == 0


async def test_jobs_of_a_cancelled_call_are_not_sent(built_parser: BuiltParser) -> None:
    watcher = Watcher()
    async with pool_of(1, built_parser.folder, watcher) as pool:
        (pid,) = pool.pids
        os.kill(pid, signal.SIGSTOP)
        held = asyncio.create_task(pool.parse([job()]))
        await until(lambda: pool.waiting == 0)
        cancelled = asyncio.create_task(pool.parse([job()] * 50))
        kept = asyncio.create_task(pool.parse([job()] * 3))
        await until(lambda: pool.waiting == 53)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert pool.waiting == watcher.waiting == 3
        os.kill(pid, signal.SIGCONT)
        assert [len(await held), len(await kept)] == [1, 3]


async def test_a_process_outlives_a_call_that_is_cancelled_as_it_is_taken(pool: ParsePool) -> None:
    (pid,) = pool.pids
    for _ in range(50):
        asked = asyncio.create_task(pool.parse([job()]))
        with pool._changed:  # so that no process takes the job before it is cancelled
            await asyncio.sleep(0)
            asked.cancel()
        time.sleep(0.001)  # the process's turn, before the call has left the queue
        await asyncio.wait([asked])
    assert len(await pool.parse([job()])) == 1
    assert pool.pids == [pid]


async def test_stopping_answers_what_waits_and_what_is_in_hand(built_parser: BuiltParser) -> None:
    async with pool_of(1, built_parser.folder) as pool:
        os.kill(pool.pids[0], signal.SIGSTOP)
        calls = [asyncio.create_task(pool.parse([job()] * GROUP)) for _ in range(3)]
        await until(lambda: 0 < pool.waiting < 3 * GROUP)
        await pool.stop()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable] * 3


async def test_signals_to_the_group_are_left_to_the_parent(pool: ParsePool) -> None:
    (pid,) = pool.pids
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, number)
    assert len(await pool.parse([job()])) == 1
    assert pool.pids == [pid]


PROGRAM = """
import asyncio, sys
from heedful.runtime.parse_pool import ParsePool

async def main():
    pool = ParsePool(sys.argv[1], 1)
    await pool.start()
    print(*pool.pids, flush=True)
    if sys.argv[2] == "wait":
        await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["return", "wait"])
def test_processes_end_with_a_program_that_does_not_stop_them(
    tmp_path: Path, built_parser: BuiltParser, end: str
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), str(built_parser.folder), end],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, os.environ["PYTHONPATH"]])},
    ) as program:
        assert program.stdout is not None
        pid = int(program.stdout.readline())
        if end == "wait":
            program.kill()
        assert program.wait(PATIENCE) == (-signal.SIGKILL if end == "wait" else 0)
    until_then = time.monotonic() + PATIENCE
    while not gone(pid):
        assert time.monotonic() < until_then, "the parse process outlived its parent"
        time.sleep(0.02)
