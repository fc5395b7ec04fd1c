"""Listening sockets: of an address, of a file (unix:PATH), or passed by who starts this process (fd:NUMBER)."""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from heedful.app.settings import environment_name
from heedful.runtime.errors import StartupError

BACKLOG = 2048
UNIX, PASSED = "unix:", "fd:"


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A listening socket; `shared` with others of this user. Raises StartupError when it is not available."""
    if host.startswith(PASSED):
        return _passed(host)
    listener = _bind_file(host) if host.startswith(UNIX) else bind(host, port, shared=shared)
    listener.listen(BACKLOG)
    return listener


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket of this address, which does not listen. Raises StartupError."""
    host = host.removeprefix("[").removesuffix("]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        if family == socket.AF_INET6:  # IPv4 too where all are meant: probes ask 127.0.0.1
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        bound.bind((host, port))
    except socket.gaierror as error:
        bound.close()
        raise _unavailable(
            f"{host}:{port}", error, "give an address, a name, unix:PATH or fd:NUMBER"
        ) from error
    except OSError as error:
        bound.close()
        remedy = f"set another {environment_name('port')} or {environment_name('host')}"
        raise _unavailable(f"{host}:{port}", error, remedy) from error
    return bound


@contextmanager
def for_processes(
    listener: socket.socket, host: str, size: int
) -> Iterator[tuple[list[socket.socket], Callable[[], socket.socket]]]:
    """Sockets for the first `size` processes, and a function that gives one to a process that replaces another.

    Of an address each process has its own, and Linux divides the connections. A file and a passed socket are one,
    from which all take connections.
    """
    with ExitStack() as held:
        if host.startswith((UNIX, PASSED)):
            held.enter_context(listener)
            yield [], listener.dup
            return
        port = listener.getsockname()[1]
        listener.close()
        opened = [listen(host, port, shared=True) for _ in range(size)]
        held.enter_context(bind(host, port, shared=True))  # nobody else takes it while none runs
        yield opened, lambda: listen(host, port, shared=True)


def address(listener: socket.socket, host: str, scheme: str) -> str:
    """What the log says: a URL, or the file."""
    if listener.family == socket.AF_UNIX:
        return f"{UNIX}{listener.getsockname()}"
    host, port, *_ = (
        listener.getsockname() if host.startswith(PASSED) else (host, listener.getsockname()[1])
    )
    host = host.removeprefix("[").removesuffix("]")
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def forget(host: str) -> None:
    """Remove the file that `listen` has made."""
    if host.startswith(UNIX):
        with suppress(OSError):
            Path(host.removeprefix(UNIX)).unlink()


def _bind_file(host: str) -> socket.socket:
    """The file of a service that has ended is replaced."""
    path = Path(host.removeprefix(UNIX))
    bound = socket.socket(socket.AF_UNIX)
    try:
        if path.exists() and stat.S_ISSOCK(path.stat().st_mode) and not _answers(path):
            path.unlink()
        bound.bind(str(path))
    except OSError as error:
        bound.close()
        raise _unavailable(host, error, f"set another {environment_name('host')}") from error
    return bound


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True


def _passed(host: str) -> socket.socket:
    """What systemd passes begins at 3."""
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


def _unavailable(where: str, error: Exception, remedy: str) -> StartupError:
    reason = getattr(error, "strerror", None) or error
    return StartupError(f"cannot listen on {where}: {reason}; {remedy}")
