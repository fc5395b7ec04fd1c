"""A service in its own process, started as an operator does; and the tools that watch it."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
PATIENCE = 200.0
"""Seconds until a test gives up waiting: a bound for a hang, not an expectation."""


def wait_for(ask: Callable[[], T | None], what: str) -> T:
    """Poll until there is an answer."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if (found := ask()) is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def ready_at(url: str, **options: Any) -> bool | None:
    """Whether it is ready; None too where nothing answers."""
    with contextlib.suppress(httpx.TransportError), httpx.Client(**options) as client:
        return client.get(f"{url}/ready", timeout=PATIENCE).is_success or None
    return None


def without_torch(folder: Path) -> Path:
    """`folder`, for PYTHONPATH: with it there is no torch, as in the serving environment; spaCy would import it."""
    folder.mkdir(exist_ok=True)
    (folder / "torch.py").write_text("raise ImportError('the serving environment has none')\n")
    return folder


HOLDING = {
    "HEEDFUL_THREADS": "1",  # models run there, not on the event loop
    "PYTHONPATH": os.pathsep.join(
        filter(None, [str(ROOT / "tests/held"), os.getenv("PYTHONPATH")])
    ),
}
"""Environment of a process whose models can be `held`."""


class Process:
    """`heedful serve` with these flags, started in `cwd`, without torch: the import takes half of a start."""

    def __init__(
        self,
        log: Path,
        flags: dict[str, str],
        env: dict[str, str],
        command: Sequence[str | Path] = (sys.executable, "-m", "heedful"),
        cwd: Path = ROOT,
    ) -> None:
        self._log, self.env = log, env
        self._held = log.with_name(f"{log.name}.held")
        arguments = [part for flag, value in flags.items() for part in (f"--{flag}", value)]
        path = [str(without_torch(log.with_name("no_torch")))]
        path += filter(None, [env.get("PYTHONPATH", os.getenv("PYTHONPATH"))])
        with log.open("wb") as stderr:
            self.popen = subprocess.Popen(
                [*command, "serve", *arguments],
                cwd=cwd,
                env={
                    **os.environ,
                    "HELD": str(self._held),
                    **env,
                    "PYTHONPATH": os.pathsep.join(path),
                },
                stderr=stderr,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def url(self) -> str:
        """Waits until it listens."""

        def listening() -> str | None:
            assert self.popen.poll() is None, self.log
            found = re.search(r"listening on (http://[^\s\"]+)", self.log)
            return found[1] if found else None

        return wait_for(listening, "a listening service")

    def ready(self) -> str:
        """Waits until its models answer; returns its URL."""
        url = self.url()

        def answering() -> bool | None:
            try:
                return httpx.get(url + "/ready", timeout=PATIENCE).is_success or None
            except httpx.TransportError as error:
                said = f"it does not answer; exit status {self.popen.poll()}; its log:\n{self.log}"
                raise AssertionError(said) from error

        wait_for(answering, "a ready service")
        return url

    def exit_status(self) -> int:
        return self.popen.wait(PATIENCE)

    def children(self) -> list[int]:
        """Process ids of all its descendants."""
        found = [self.popen.pid]
        for pid in found:  # grows while it is read
            with contextlib.suppress(OSError):
                threads = [thread.name for thread in Path(f"/proc/{pid}/task").iterdir()]
                found += [int(c) for t in threads for c in _read(pid, f"task/{t}/children").split()]
        return found[1:]

    def servers(self) -> list[int]:
        """Process ids of its serving processes, when there are several."""
        own = _read(self.popen.pid, "cmdline")
        return [pid for pid in self.children() if _read(pid, "cmdline") == own]

    def descriptors(self) -> int:
        """How many files and sockets it and its serving processes hold open."""
        holders = [self.popen.pid, *self.servers()]
        return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in holders)

    def memory(self) -> int:
        """Bytes that it and its children use, shared pages counted once (PSS)."""
        tree = [self.popen.pid, *self.children()]
        found = [re.search(r"^Pss: +(\d+) kB", _read(pid, "smaps_rollup"), re.M) for pid in tree]
        return sum(1024 * int(pss[1]) for pss in found if pss)

    def ended(self) -> bool:
        return self.popen.poll() is not None

    def release(self) -> None:
        """Release what was `held`."""
        self._held.unlink(missing_ok=True)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let no model answer inside the context; the process was started with `HOLDING`."""
        self._held.touch()
        try:
            yield
        finally:
            self.release()

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()


def _read(pid: int, name: str) -> str:
    """A file of /proc; empty when the process has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_text()
    return ""


def ran(
    *command: str | Path, cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """How a program ends, and what it prints; `environment` is added to this process's."""
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )


def output(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """What a program prints that ends with status 0."""
    done = ran(*command, cwd=cwd, **environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def tool(program: str) -> str:
    """The path of a program that scripts/install-test-tools installs. In CI its absence is a failure."""
    found = shutil.which(program)
    if found is None:
        reason = f"{program} is missing: run scripts/install-test-tools"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found
