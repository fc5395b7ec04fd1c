"""Log lines on stderr, as text or as JSON: ours and uvicorn's alike. They hold no user's text."""

import functools
import logging
import logging.config
import time
from typing import Any, Literal

import orjson

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


def configure(shape: Literal["text", "json"]) -> None:
    """Send every log line of this process to stderr in the one shape."""
    # What no line shows is not looked up: the caller, the thread, the process.
    logging._srcfile = None  # as logging's documentation has it
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": {"()": JSONLine if shape == "json" else TextLine}},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"level": "INFO", "handlers": ["stderr"]},
        }
    )


class TextLine(logging.Formatter):
    """2026-01-31T12:00:00.000Z INFO heedful.access request method=POST route=/embed .."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname} {record.name} {record.getMessage()}"
        line += "".join(f" {name}={value}" for name, value in _extra(record).items())
        return line if not record.exc_info else f"{line}\n{self.formatException(record.exc_info)}"


class JSONLine(logging.Formatter):
    """One object a line: time, level, logger, message, and what the caller gave as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(fields, default=str).decode()


def _time(record: logging.LogRecord) -> str:
    return f"{_seconds(int(record.created))}.{int(record.msecs):03d}Z"


@functools.lru_cache(maxsize=1)
def _seconds(created: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created))


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _STANDARD and value is not None
    }
