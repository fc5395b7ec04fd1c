"""Processes that compute vectors without HTTP (benchmarks.answering): they read texts and write the seconds taken."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import ROOT, ServerFailed


class Worker:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, texts: Sequence[str]) -> None:
        """Start computing; `seconds` waits for the end."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(list(texts)) + "\n")
        self._process.stdin.flush()

    def seconds(self) -> float:
        """Seconds of the last request. Raises ServerFailed when the process has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ServerFailed(f"{self._process.args!r} has ended")
        return float(line)


@contextmanager
def worker(*command: str | Path) -> Iterator[Worker]:
    """A process that speaks this module's protocol, ended on exit."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "ORT_DISABLE_TELEMETRY": "1"},  # as `import heedful` sets it
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Worker(process)
    finally:
        process.kill()
        process.communicate()


def rate(workers: Sequence[Worker], texts: Sequence[str]) -> float:
    """Texts a second of workers that share the texts and run in parallel."""
    for number, each in enumerate(workers):
        each.ask(texts[number :: len(workers)])
    return len(texts) / max([each.seconds() for each in workers])
