"""Log lines: one each, in one shape."""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from heedful.app.observability import logs
from heedful.app.observability.logs import Lines, Stderr


def record(**extra: object) -> logging.LogRecord:
    made = logging.LogRecord(
        "heedful.access", logging.INFO, "x.py", 1, "%s %s", ("POST", "/"), None
    )
    made.created, made.msecs = 0.0, 7.0
    for name, value in extra.items():
        setattr(made, name, value)
    return made


def test_text_has_the_extras_behind_the_message() -> None:
    line = Lines("text").format(record(model="tiny", refusal=None))
    assert line == "1970-01-01T00:00:00.007Z INFO heedful.access POST / model=tiny"


def test_json_is_one_object_a_line() -> None:
    line = Lines("json").format(record(duration_ms=1.5, model="a\nb"))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.007Z",
        "level": "info",
        "logger": "heedful.access",
        "message": "POST /",
        "duration_ms": 1.5,
        "model": "a\nb",
    }


def test_json_holds_an_exception_in_its_line() -> None:
    made = record()
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 / 0
    made.exc_info = (caught.type, caught.value, caught.tb)
    line = Lines("json").format(made)
    assert "\n" not in line
    assert "ZeroDivisionError" in json.loads(line)["exception"]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


@pytest.mark.parametrize("in_thread", [False, True])
def test_lines_are_written_in_order(pipe: tuple[int, int], in_thread: bool) -> None:
    reader, writer = pipe
    handler = Stderr(writer)
    handler.setFormatter(Lines("text"))
    if in_thread:
        handler.start(lambda: None)
    for number in range(100):
        handler.emit(record(number=number))
    handler.flush()
    numbers = [line.rpartition(b"=")[2] for line in os.read(reader, 65536).splitlines()]
    assert numbers == [b"%d" % number for number in range(100)]


def test_who_reads_nothing_costs_lines_and_no_time(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these would block for ever otherwise."""
    monkeypatch.setattr(logs, "MAX_WAITING", 50)
    dropped: list[None] = []
    for in_thread in (False, True):  # the first one fills the pipe
        handler = Stderr(pipe[1])
        handler.setFormatter(Lines("json"))
        if in_thread:
            handler.start(lambda: dropped.append(None))
        for _ in range(2000):
            handler.emit(record())
        handler.flush()
    assert 1900 < len(dropped) < 2000


def test_a_reader_that_has_gone_is_no_failure(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.close(reader)
    handler = Stderr(writer)
    handler.setFormatter(Lines("text"))
    handler.emit(record())
    handler.start(lambda: None)
    handler.emit(record())
    handler.flush()
