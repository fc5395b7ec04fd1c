"""Listening sockets: of an address, of a file (unix:PATH), or passed by the parent process (fd:NUMBER)."""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heedful.app.settings import environment_name
from heedful.runtime.errors import StartupError

BACKLOG = 2048
UNIX, PASSED = "unix:", "fd:"


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A listening socket, `shared` with others of this user. Raises StartupError when it is not available."""
    if host.startswith(PASSED):
        return _passed(host)
    listener = _bind_file(host) if host.startswith(UNIX) else bind(host, port, shared=shared)
    listener.listen(BACKLOG)
    return listener


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket bound to this address, which does not listen. Raises StartupError."""
    host = host.removeprefix("[").removesuffix("]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        if family == socket.AF_INET6:  # "::" is IPv4 too: probes use 127.0.0.1
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        remedy = f"set another {environment_name('port')} or {environment_name('host')}"
        if isinstance(error, socket.gaierror):
            remedy = "give an address, a name, unix:PATH or fd:NUMBER"
        raise _unavailable(f"{host}:{port}", error, remedy) from error
    return sock


@contextmanager
def for_processes(
    listener: socket.socket, host: str, size: int
) -> Iterator[tuple[list[socket.socket], Callable[[], socket.socket]]]:
    """Sockets for the first `size` processes, and a function that opens one for a process that replaces another.

    Each process has its own socket of an address, and Linux divides the connections. All processes take connections
    from the same file or passed socket.
    """
    if host.startswith((UNIX, PASSED)):
        with listener:
            yield [], listener.dup
        return
    port = listener.getsockname()[1]
    listener.close()
    listeners = [listen(host, port, shared=True) for _ in range(size)]
    with bind(host, port, shared=True):  # keeps the port while no process runs
        yield listeners, lambda: listen(host, port, shared=True)


def address(listener: socket.socket, host: str, scheme: str) -> str:
    """The address for the log: a URL, or the file."""
    if listener.family == socket.AF_UNIX:
        return f"{UNIX}{listener.getsockname()}"
    host, port, *_ = (
        listener.getsockname() if host.startswith(PASSED) else (host, listener.getsockname()[1])
    )
    host = host.removeprefix("[").removesuffix("]")
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def remove_file(host: str) -> None:
    """Remove the file of a socket that `listen` has opened."""
    if host.startswith(UNIX):
        with suppress(OSError):
            Path(host.removeprefix(UNIX)).unlink()


def _bind_file(host: str) -> socket.socket:
    """A socket bound to the file. It replaces the file of a service that has ended."""
    path = Path(host.removeprefix(UNIX))
    sock = socket.socket(socket.AF_UNIX)
    try:
        if path.exists() and stat.S_ISSOCK(path.stat().st_mode) and not _has_listener(path):
            path.unlink()
        sock.bind(str(path))
    except OSError as error:
        sock.close()
        raise _unavailable(host, error, f"set another {environment_name('host')}") from error
    return sock


def _has_listener(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True


def _passed(host: str) -> socket.socket:
    """The socket of fd:NUMBER; systemd's first is 3."""
    number = host.removeprefix(PASSED).removeprefix("//")
    try:
        listener = socket.socket(fileno=os.dup(int(number)))
        accepts = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except (OSError, ValueError, OverflowError) as error:
        raise _unavailable(
            host, error, "pass a listening socket; systemd's first is fd:3"
        ) from error
    if not accepts:
        listener.close()
        raise StartupError(
            f"{host} does not listen: pass a listening socket, of a .socket unit with Accept=no"
        )
    return listener


def _unavailable(address: str, error: Exception, remedy: str) -> StartupError:
    reason = getattr(error, "strerror", None) or error
    return StartupError(f"cannot listen on {address}: {reason}; {remedy}")
