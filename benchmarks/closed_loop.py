"""Closed loop: each connection sends its next request when it has the last answer (wrk)."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

SCRIPT = Path(__file__).with_name("wrk.lua")
PATIENCE = 200.0
"""Seconds; no measurement gets as long as this."""


class LoadFailed(Exception):
    """The load could not be generated, or was not answered; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Load:
    """The result of a closed loop; latencies in ms."""

    requests: int
    requests_per_second: float
    p50: float
    p90: float
    p99: float


class Closed:
    """Requests to one path of a server, with one body after the other."""

    def __init__(self, url: str, path: str, bodies: Sequence[Any]) -> None:
        """Raises LoadFailed when wrk is not installed."""
        if shutil.which("wrk") is None:
            raise LoadFailed("wrk is missing: run scripts/install-test-tools")
        self._url, self._path = url, path
        self._lines = b"\n".join(map(orjson.dumps, bodies))

    def run(self, connections: int, seconds: float) -> Load:
        """Measure for `seconds`; doubled until each connection has two answers on average.

        Raises LoadFailed when a request is not answered 200.
        """
        while seconds < PATIENCE:
            figures = self._measure(connections, max(1, round(seconds)))
            if figures["failed"]:
                raise LoadFailed(
                    f"{figures['failed']} requests to {self._url} failed, {figures['requests']} were answered"
                )
            if figures["requests"] >= 2 * connections:
                rate = figures["requests"] / figures["seconds"]
                return Load(
                    int(figures["requests"]), rate, figures["p50"], figures["p90"], figures["p99"]
                )
            seconds *= 2
        raise LoadFailed(f"{self._url} does not answer {connections} connections")

    def _measure(self, connections: int, seconds: int) -> dict[str, float]:
        """The figures that wrk.lua prints."""
        with tempfile.NamedTemporaryFile() as bodies:
            bodies.write(self._lines)
            bodies.flush()
            loop = ["--threads", "1", "--connections", str(connections), "--timeout", "300s"]
            script = ["--duration", f"{seconds}s", "--script", str(SCRIPT)]
            arguments = [self._url, "--", self._path, bodies.name]
            done = subprocess.run(
                ["wrk", *loop, *script, *arguments], capture_output=True, text=True, check=False
            )
        results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        if not results:
            raise LoadFailed(f"wrk on {self._url}: {done.stdout}{done.stderr}")
        figures: dict[str, float] = json.loads(results[0].removeprefix("RESULT "))
        return figures
