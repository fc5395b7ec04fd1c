"""Log lines: one each, in one shape."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from heedful.app.observability.logs import JSONLine, Line, Stderr, TextLine, info


def record(**extra: object) -> logging.LogRecord:
    made = logging.LogRecord(
        "heedful.access", logging.INFO, "x.py", 1, "%s %s", ("POST", "/"), None
    )
    made.created, made.msecs = 0.0, 7.0
    for name, value in extra.items():
        setattr(made, name, value)
    return made


def test_text_has_the_extras_behind_the_message() -> None:
    line = TextLine().format(record(model="tiny", refusal=None))
    assert line == "1970-01-01T00:00:00.007Z INFO heedful.access POST / model=tiny"


def test_json_is_one_object_a_line() -> None:
    line = JSONLine().format(record(duration_ms=1.5, model="a\nb"))
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
    line = JSONLine().format(made)
    assert "\n" not in line
    assert "ZeroDivisionError" in json.loads(line)["exception"]


@pytest.fixture(params=[TextLine, JSONLine])
def stderr(request: pytest.FixtureRequest) -> Iterator[Stderr]:
    """The only handler, as in a service; it writes into memory."""
    lines: Line = request.param()
    handler = Stderr(lines)
    handler.setStream(io.StringIO())
    root = logging.root
    kept, level = root.handlers[:], root.level
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    yield handler
    root.handlers[:] = kept
    root.setLevel(level)


def alone(handler: Stderr) -> None:
    """Make it the only handler: pytest adds its own between a fixture and its test."""
    logging.root.handlers[:] = [handler]


def written(handler: Stderr) -> list[str]:
    assert isinstance(handler.stream, io.StringIO)
    return handler.stream.getvalue().splitlines()


def without_time(line: str) -> str:
    return line.replace(line[line.index("20") :][:24], "", 1)


def test_a_line_without_a_record_is_the_same(stderr: Stderr) -> None:
    alone(stderr)
    logger = logging.getLogger("heedful.access")
    extra = {"route": "/embed", "status": 200, "refusal": None, "duration_ms": 1.25}
    info(logger, "request", extra)
    logger.info("request", extra=extra)
    ours, theirs = written(stderr)
    assert without_time(ours) == without_time(theirs)
    logger.setLevel(logging.WARNING)
    info(logger, "request", extra)
    logger.setLevel(logging.NOTSET)
    assert len(written(stderr)) == 2


def test_whoever_else_listens_gets_a_record(
    stderr: Stderr, caplog: pytest.LogCaptureFixture
) -> None:
    logging.root.addHandler(caplog.handler)
    info(logging.getLogger("heedful.access"), "request", {"status": 200})
    [found] = caplog.records
    assert (found.getMessage(), vars(found)["status"]) == ("request", 200)
    assert len(written(stderr)) == 1


def test_a_line_that_cannot_be_written_raises_nothing(
    stderr: Stderr, capsys: pytest.CaptureFixture[str]
) -> None:
    alone(stderr)
    stderr.stream.close()
    info(logging.getLogger("heedful.access"), "request", {})
    assert "I/O operation on closed file" in capsys.readouterr().err
