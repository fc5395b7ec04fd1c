"""Log lines on stderr as text or JSON, for our loggers and uvicorn's. They hold no user text."""

import functools
import logging
import logging.config
import time
from collections.abc import Mapping
from typing import Any, Literal, TextIO

import orjson

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


def configure(
    format: Literal["text", "json"], level: Literal["info", "warning", "error"] = "info"
) -> None:
    """Send every log line of this process that is of this level or above to stderr in one format."""
    # No line shows the caller, thread or process: do not look them up.
    logging._srcfile = None  # the way logging's documentation recommends
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {
                "stderr": {"()": Stderr, "lines": JSONLine() if format == "json" else TextLine()}
            },
            "root": {"level": level.upper(), "handlers": ["stderr"]},
        }
    )


def info(logger: logging.Logger, message: str, extra: Mapping[str, object]) -> None:
    """`logger.info(message, extra=extra)` for the line of each request: where only stderr listens, without a record."""
    if not logger.isEnabledFor(logging.INFO):
        return
    handlers = logging.root.handlers
    if len(handlers) == 1 and isinstance(handlers[0], Stderr) and not logger.handlers:
        handlers[0].info(logger.name, message, extra)
    else:
        logger.info(message, extra=extra)


class Line(logging.Formatter):
    """What a line holds; the classes below say how it is written."""

    def format(self, record: logging.LogRecord) -> str:
        return self.line(
            _time(int(record.created), int(record.msecs)),
            record.levelname,
            record.name,
            record.getMessage(),
            _extra(record),
            self.formatException(record.exc_info) if record.exc_info else None,
        )

    def line(
        self,
        at: str,
        level: str,
        logger: str,
        message: str,
        extra: Mapping[str, object],
        failure: str | None = None,
    ) -> str:
        """What of `extra` is not None; `failure` is an exception's traceback."""
        raise NotImplementedError


class TextLine(Line):
    """2026-01-31T12:00:00.000Z INFO heedful.access request method=POST route=/embed .."""

    def line(
        self,
        at: str,
        level: str,
        logger: str,
        message: str,
        extra: Mapping[str, object],
        failure: str | None = None,
    ) -> str:
        named = [f" {name}={value}" for name, value in extra.items() if value is not None]
        line = f"{at} {level} {logger} {message}{''.join(named)}"
        return line if failure is None else f"{line}\n{failure}"


class JSONLine(Line):
    """One object per line: time, level, logger, message, and the caller's `extra`."""

    def line(
        self,
        at: str,
        level: str,
        logger: str,
        message: str,
        extra: Mapping[str, object],
        failure: str | None = None,
    ) -> str:
        fields: dict[str, object] = {
            "time": at,
            "level": level.lower(),
            "logger": logger,
            "message": message,
        }
        fields |= {name: value for name, value in extra.items() if value is not None}
        if failure is not None:
            fields["exception"] = failure
        return orjson.dumps(fields, default=str).decode()


class Stderr(logging.StreamHandler[TextIO]):
    """Writes the lines of records to stderr, and lines that have none."""

    def __init__(self, lines: Line) -> None:
        super().__init__()
        self.setFormatter(lines)
        self._lines = lines

    def info(self, logger: str, message: str, extra: Mapping[str, object]) -> None:
        """Write a line of the level INFO. Prints the cause where that fails."""
        self.acquire()
        try:
            now = time.time()
            at = _time(int(now), int(now % 1 * 1000))
            self.stream.write(self._lines.line(at, "INFO", logger, message, extra) + "\n")
            self.stream.flush()
        except (OSError, TypeError, ValueError):  # as every handler of logging does
            self.handleError(logging.makeLogRecord({"name": logger, "msg": message}))
        finally:
            self.release()


def _time(seconds: int, ms: int) -> str:
    return f"{_seconds(seconds)}.{ms:03d}Z"


@functools.lru_cache(maxsize=1)
def _seconds(created: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created))


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}
