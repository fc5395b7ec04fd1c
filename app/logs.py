"""Log lines on stderr as text or JSON, for our loggers and uvicorn's. They hold no user text."""

import functools
import logging
import logging.config
import time
from typing import Any, Literal

import orjson

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


def configure(format: Literal["text", "json"]) -> None:
    """Send every log line of this process to stderr in one format."""
    # No line shows the caller, thread or process: do not look them up.
    logging._srcfile = None  # the way logging's documentation recommends
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": {"()": JSONLine if format == "json" else TextLine}},
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
    """One object per line: time, level, logger, message, and the caller's `extra`."""

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
