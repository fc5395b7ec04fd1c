"""Servers in their own processes, and the processor time and memory of their process trees."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[1]
INSTALLED = ROOT / ".serve-venv" / "bin" / "heedful"
THIS = (sys.executable, "-m", "heedful")
"""The service of this environment."""
PATIENCE = 300.0
"""Seconds to wait for a server to answer."""
POLL = 0.02


class ServerFailed(Exception):
    """A server ended or did not answer in time; the message ends with the end of its log."""


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    pid: int
    ready_seconds: float
    """Seconds from its start to its first good answer."""

    def tree(self) -> list[int]:
        """Its process id and those of all its descendants."""
        parents = {int(p.name): _parent(p) for p in Path("/proc").iterdir() if p.name.isdigit()}
        pids = [self.pid]
        for pid in pids:  # grows while it is read
            pids += [child for child, parent in parents.items() if parent == pid]
        return pids

    def memory(self) -> float:
        """MB of the process tree, shared pages counted once (PSS)."""
        lines = [line for pid in self.tree() for line in _read(f"{pid}/smaps_rollup").splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024

    def processor_seconds(self) -> float:
        """Processor time of the process tree, user and system."""
        fields = [_read(f"{pid}/stat").rpartition(")")[2].split() for pid in self.tree()]
        ticks = sum(int(each[11]) + int(each[12]) for each in fields if each)
        return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(
    command: Sequence[str | Path],
    url: str,
    ready: str,
    *,
    env: Mapping[str, str] = {},
    cwd: Path = ROOT,
) -> Iterator[Server]:
    """Start a server, wait until `url` + `ready` answers 200, and end its process tree on exit.

    Raises ServerFailed.
    """
    with tempfile.TemporaryFile() as log:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **env},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        server = Server(url, process.pid, 0.0)
        try:
            with httpx.Client(timeout=5) as client:
                while not _answers(client, url + ready):
                    seconds = time.perf_counter() - started
                    if process.poll() is not None or seconds > PATIENCE:
                        log.seek(0)
                        last = log.read().decode(errors="replace")[-2000:]
                        raise ServerFailed(
                            f"{command[0]} gave no answer in {seconds:.0f} s: {last}"
                        )
                    time.sleep(POLL)
            yield Server(url, process.pid, time.perf_counter() - started)
        finally:
            _end(process, server.tree())


def heedful(
    models: Path,
    command: Sequence[str | Path] = (INSTALLED,),
    *,
    caches: bool = False,
    env: Mapping[str, str] = {},
    **settings: object,
) -> AbstractContextManager[Server]:
    """`heedful serve` on a free port with these settings, without caches by default.

    The command is that of the serving environment (`make .serve-venv/installed`), which has no torch for spaCy to
    load, or THIS. No line is logged for a request, like by the peers FastAPI and LitServe.
    """
    port = free_port()
    defaults = {"models": models, "port": port, "log_level": "warning"}
    flags = {**defaults, **({} if caches else {"cache_items": 0}), **settings}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    url = f"http://127.0.0.1:{port}"
    return serving([*command, "serve", *arguments], url, "/ready", env=env)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def shipped(source: Path) -> list[str]:
    """Names of the bundles in a folder."""
    return sorted(card.parent.name for card in source.glob("*/card.json"))


@contextmanager
def bundles(names: Sequence[str], source: Path) -> Iterator[Path]:
    """A folder with these bundles of `source` and all its parsers."""
    with tempfile.TemporaryDirectory() as folder:
        others = {path.name for path in source.iterdir()} - set(shipped(source))
        for name in (*names, *others):
            (Path(folder) / name).symlink_to((source / name).resolve())
        yield Path(folder)


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _end(process: "subprocess.Popen[bytes]", tree: Sequence[int]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(20)
    for pid in tree:  # processes in another session, or that ignore the signal
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _parent(process: Path) -> int:
    fields = _read(f"{process.name}/stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _read(place: str) -> str:
    """A file of /proc; empty when the process has ended."""
    with suppress(OSError):
        return Path("/proc", place).read_text()
    return ""
