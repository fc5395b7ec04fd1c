"""Log lines: one each, in one shape."""

import json
import logging

import pytest

from heedful.app.logs import JSONLine, TextLine


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
