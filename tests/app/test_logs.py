"""Log lines: one each, in one shape, and never in the way of the service."""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

import pytest

from heedful.app.observability import logs
from heedful.app.observability.logs import Lines, Stderr


def record(**extra: object) -> logging.LogRecord:
    fields = {"name": "heedful.access", "levelno": logging.INFO, "levelname": "INFO"}
    fields |= {"msg": "%s %s", "args": ("POST", "/"), "created": 0.0, "msecs": 7.0}
    return logging.makeLogRecord({**fields, **extra})


def test_a_line_of_text_or_an_object_of_json() -> None:
    line = Lines("text").format(record(model="tiny", refusal=None))
    assert line == "1970-01-01T00:00:00.007Z INFO heedful.access POST / model=tiny"
    line = Lines("json").format(record(duration_ms=1.5, model="a\nb"))
    assert "\n" not in line
    assert json.loads(line) == {
        **{"time": "1970-01-01T00:00:00.007Z", "level": "info", "logger": "heedful.access"},
        **{"message": "POST /", "duration_ms": 1.5, "model": "a\nb"},
    }
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 / 0
    line = Lines("json").format(record(exc_info=(caught.type, caught.value, caught.tb)))
    assert "\n" not in line
    assert "ZeroDivisionError" in json.loads(line)["exception"]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


def handler(descriptor: int, format: Literal["text", "json"] = "text") -> Stderr:
    handler = Stderr(descriptor)
    handler.setFormatter(Lines(format))
    return handler


@pytest.mark.parametrize("in_thread", [False, True])
def test_lines_are_written_in_order(pipe: tuple[int, int], in_thread: bool) -> None:
    reader, writer = pipe
    writing = handler(writer)
    if in_thread:
        writing.start(lambda: None)
    for number in range(100):
        writing.emit(record(number=number))
    writing.flush()
    numbers = [line.rpartition(b"=")[2] for line in os.read(reader, 65536).splitlines()]
    assert numbers == [b"%d" % number for number in range(100)]


def test_who_reads_nothing_costs_lines_and_no_time(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these would block for ever otherwise."""
    monkeypatch.setattr(logs, "MAX_WAITING", 50)
    dropped: list[None] = []
    for in_thread in (False, True):  # the first one fills the pipe
        writing = handler(pipe[1], "json")
        if in_thread:
            writing.start(lambda: dropped.append(None))
        for _ in range(2000):
            writing.emit(record())
        writing.flush()
    assert 1900 < len(dropped) < 2000


def test_a_reader_that_has_gone_is_no_failure(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    writing = handler(pipe[1])
    writing.emit(record())
    writing.start(lambda: None)
    writing.emit(record())
    writing.flush()
