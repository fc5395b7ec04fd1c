"""The start of a serving process: a fork of the supervisor that keeps nothing of it but its memory."""

import ctypes
import logging
import os
import signal
import sys
from collections.abc import Callable

from heedful.app.process.worker_group import Link

log = logging.getLogger("heedful.supervisor")

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
"""Those that the supervisor handles."""
PR_SET_PDEATHSIG = 1


def fork(
    slot: int, serve: Callable[[Link], int], close_inherited: Callable[[], None]
) -> tuple[int, Link]:
    """The process id, and the supervisor's end of the link. Raises OSError where the system is short."""
    ours, theirs = Link.pair(slot)
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the child handles them
    try:
        pid = os.fork()
        if not pid:
            ours.close()
            os._exit(_run(serve, theirs, close_inherited, parent))
    except OSError:
        ours.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        theirs.close()
    return pid, ours


def _run(
    serve: Callable[[Link], int], link: Link, close_inherited: Callable[[], None], parent: int
) -> int:
    """In the child: serve. Returns the exit status."""
    status = 1
    try:
        # Ends with the supervisor, even while it is stopped.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return status
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the supervisor handles it
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: sys.exit(0))  # until uvicorn sets its own
        close_inherited()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        status = serve(link)
    except SystemExit as end:
        status = int(end.code or 0)
    except Exception:
        log.exception("a serving process failed")
    logging.shutdown()
    return status
