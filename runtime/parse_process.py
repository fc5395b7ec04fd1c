"""A parse process: the parent's handle to it, and what runs inside.

The child is deliberately light: it imports only spaCy, and that last. Over a pipe it sends `Ready`,
or a string that says why it cannot start, and then an `Answer` to each list of jobs.
"""

import atexit
import logging
import multiprocessing
import os
import signal
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from heedful.runtime.errors import StartupError

if TYPE_CHECKING:
    from heedful.text.parse import Packed, Parse, ParseJob, Parser

log = logging.getLogger(__name__)

START_SECONDS = 120.0
ANSWER_SECONDS = 60.0
"""A process that takes longer over one list of jobs counts as hung."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


class ProcessDiedError(Exception):
    """The process has died or hangs; the message says how."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a list of jobs."""

    parses: "Packed"
    """The parses of the jobs that did not fail, in order."""
    failed: dict[int, str]
    """The parser's traceback by number of the failed job."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The parser that a process has loaded."""

    name: str
    fingerprint: str
    tokenizer: bytes = field(repr=False)  # see Parser.tokenizer


class ParseProcess:
    """The parent's end. Its methods block; one thread uses it, `alive` and `kill` are for any thread."""

    def __init__(self, pipeline: str) -> None:
        """Start a process; `ready` waits for it."""
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs, pipeline), daemon=True)
        self._process.start()
        theirs.close()  # so that the child's death closes the pipe
        atexit.register(self.kill)  # the child ignores the SIGTERM that multiprocessing would send

    def ready(self) -> Ready:
        """Wait until the parser is loaded. Raises StartupError."""
        try:
            answer = self._receive(START_SECONDS)
        except ProcessDiedError as died:
            raise StartupError(f"a parse process died while it started: {died}") from died
        if not isinstance(answer, Ready):
            raise StartupError(str(answer))
        return answer

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, "started in __init__"
        return self._process.pid

    def alive(self) -> bool:
        return self._process.is_alive()

    def parse(self, jobs: "Sequence[ParseJob]") -> "list[Parse | None]":
        """One parse per job, None if the parser failed on it (logged). Raises ProcessDiedError."""
        try:
            self._pipe.send(list(jobs))
        except OSError as error:
            raise ProcessDiedError(str(error)) from error
        from heedful.text.parse import (
            unpack,  # imported late: the child must set its thread variables first
        )

        answer: Answer = self._receive(ANSWER_SECONDS)
        for number, trace in answer.failed.items():
            why = {"exception": trace}
            log.error(
                "the parser failed on a text of %d characters", len(jobs[number].text), extra=why
            )
        good = [job for number, job in enumerate(jobs) if number not in answer.failed]
        parses = iter(unpack(good, answer.parses))
        return [None if number in answer.failed else next(parses) for number in range(len(jobs))]

    def kill(self) -> None:
        """Kill it now. A caller that waits for an answer gets ProcessDiedError."""
        self._process.kill()

    def close(self) -> None:
        """Kill it and free its resources."""
        atexit.unregister(self.kill)
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _receive(self, seconds: float) -> Any:
        try:
            if self._pipe.poll(seconds):
                return self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(1)
            raise ProcessDiedError(f"exit code {self._process.exitcode}") from error
        raise ProcessDiedError(f"no answer in {seconds:.0f} s")


def _main(pipe: "Connection[Any, Any]", pipeline: str) -> None:
    """The child: parse what comes down the pipe until the parent closes it or dies."""
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
    ):  # sent to the whole group: the parent decides
        signal.signal(number, signal.SIG_IGN)
    for variable in THREADS:  # read when numpy is loaded, which is why the import stands here
        os.environ[variable] = "1"
    from heedful.runtime.memory import freeze_gc, raise_malloc_thresholds, trim_heap
    from heedful.text.errors import ParserError
    from heedful.text.parse import Parser

    try:
        parser = Parser.load(pipeline)
    except ParserError as error:
        pipe.send(str(error))
        return
    freeze_gc()
    trim_heap()
    raise_malloc_thresholds()
    try:
        pipe.send(Ready(parser.name, parser.fingerprint, parser.tokenizer()))
        while True:
            pipe.send(_answer(parser, pipe.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _answer(parser: "Parser", jobs: "list[ParseJob]") -> Answer:
    """Parse all jobs at once, or one by one if that fails, so that a bad job fails alone."""
    from heedful.text.parse import pack

    try:
        return Answer(pack(parser.parse(jobs)), {})
    except Exception:  # noqa: BLE001  # repeated below, job by job
        parses, failed = [], {}
        for number, job in enumerate(jobs):
            try:
                parses += parser.parse([job])
            except Exception:  # noqa: BLE001  # the parent logs it
                failed[number] = traceback.format_exc()
        return Answer(pack(parses), failed)
