"""Threads and locks that a forked process must replace: it has its parent's memory, but none of the other threads."""

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    def renew(self) -> None:
        """Replace threads, and locks that a thread of the parent may have held. Called in the child."""


_alive: WeakSet[Forked] = WeakSet()


def renew_in_children(one: Forked) -> None:
    """Let every process that is forked from this one renew it."""
    _alive.add(one)


class LockOwner:
    """Has a lock that is free in a forked process, whoever held it in the parent."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Replace the lock."""
        self._lock = threading.Lock()


def _renew_all() -> None:
    for one in list(_alive):
        one.renew()


os.register_at_fork(after_in_child=_renew_all)
