"""Replacing threads and locks in a forked process, which has its parent's memory, but not its threads."""

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    def renew(self) -> None:
        """Replace threads, and locks that a thread of the parent may have held. Called in the child."""


_objects: WeakSet[Renewable] = WeakSet()


def renew_in_children(instance: Renewable) -> None:
    """Call the object's `renew` in each process that forks from this one."""
    _objects.add(instance)


class LockOwner:
    """Has a lock that is free in a forked process, even if a thread of the parent held it."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Replace the lock."""
        self._lock = threading.Lock()


def _renew_all() -> None:
    for instance in list(_objects):
        instance.renew()


os.register_at_fork(after_in_child=_renew_all)
