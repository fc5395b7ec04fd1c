"""Log lines on stderr as text or JSON, for our loggers and uvicorn's. They hold no user text.

No request waits for the reader of the log: if a pipe is full or a terminal is stopped, lines are dropped and counted.
"""

import functools
import logging
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Literal

import orjson

MAX_WAITING = 10_000
"""Lines that wait to be written; more are dropped."""
ATOMIC_BYTES = 4096
"""Bytes that a process may write to a pipe at a time without mixing its lines with other processes' (PIPE_BUF)."""
END_SECONDS = 0.5
"""Time to write the waiting lines at the end."""
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


def configure(
    format: Literal["text", "json"], level: Literal["debug", "info", "warning", "error"] = "info"
) -> None:
    """Send the log lines of this process, from this level up, to stderr."""
    # No line shows the caller, thread or process, so logging does not look them up.
    logging._srcfile = None  # the way logging's documentation recommends
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = Stderr()
    handler.setFormatter(Lines(format))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def write_in_thread(dropped: Callable[[], None]) -> None:
    """Have a thread write this process's lines from now on. Call it after forks. `dropped` counts a lost line."""
    for handler in logging.root.handlers:
        if isinstance(handler, Stderr):
            handler.start(dropped)


class Lines(logging.Formatter):
    """text: 2026-01-31T12:00:00.000Z INFO heedful.access request method=POST route=/embed ..

    json: an object per line: time, level, logger, message, and the caller's `extra`.
    """

    def __init__(self, format: Literal["text", "json"]) -> None:
        super().__init__()
        self._json = format == "json"

    def format(self, record: logging.LogRecord) -> str:
        timestamp = f"{_seconds(int(record.created))}.{int(record.msecs):03d}Z"
        level = record.levelname
        failure = self.formatException(record.exc_info) if record.exc_info else None
        message = record.getMessage()
        extra = {
            name: value
            for name, value in vars(record).items()
            if name not in _STANDARD and value is not None
        }
        if not self._json:
            fields = "".join(f" {name}={value}" for name, value in extra.items())
            line = f"{timestamp} {level} {record.name} {message}{fields}"
            return line if failure is None else f"{line}\n{failure}"
        if failure is not None:
            extra["exception"] = failure
        standard = {
            "time": timestamp,
            "level": level.lower(),
            "logger": record.name,
            "message": message,
        }
        return orjson.dumps(standard | extra, default=str).decode()


class Stderr(logging.Handler):
    """Writes a line to stderr if that does not block; after `start` a thread writes the lines."""

    def __init__(self, descriptor: int = 2) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._waiting: SimpleQueue[bytes | threading.Event] | None = None
        self._dropped: Callable[[], None] = lambda: None

    def start(self, dropped: Callable[[], None]) -> None:
        self._waiting, self._dropped = SimpleQueue(), dropped
        threading.Thread(target=self._write_all, args=(self._waiting,), daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record).encode("utf-8", "backslashreplace") + b"\n"
        except (TypeError, ValueError):  # as every handler of logging does
            self.handleError(record)
            return
        if self._waiting is None:
            if select.select([], [self._descriptor], [], 0)[1]:
                self._write(line)
        elif self._waiting.qsize() < MAX_WAITING:
            self._waiting.put(line)
        else:
            self._dropped()

    def flush(self) -> None:
        """Wait until the lines are written, for END_SECONDS at most."""
        if self._waiting is not None:
            written = threading.Event()
            self._waiting.put(written)
            written.wait(END_SECONDS)

    def _write_all(self, waiting: SimpleQueue[bytes | threading.Event]) -> None:
        while True:
            lines, item = b"", waiting.get()
            while isinstance(item, bytes):
                lines += item
                if len(lines) > ATOMIC_BYTES // 2 or waiting.empty():
                    break
                item = waiting.get()
            self._write(lines)
            if isinstance(item, threading.Event):
                item.set()

    def _write(self, lines: bytes) -> None:
        with suppress(OSError):  # the reader has closed the pipe
            while lines:
                lines = lines[os.write(self._descriptor, lines) :]


@functools.lru_cache(maxsize=1)
def _seconds(created: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created))
