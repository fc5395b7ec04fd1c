"""Replacing threads and locks in a forked process, which has its parent's memory, but not its threads."""

import os
import threading
from weakref import WeakSet


class ForkSafe:
    """Has a lock that is free in a forked process, even if a thread of the parent held it."""

    def __init__(self) -> None:
        self.renew()
        _objects.add(self)

    def renew(self) -> None:
        """Make a new lock, and in subclasses new threads. Called once, and in each process that forks."""
        self._lock = threading.Lock()


_objects: WeakSet[ForkSafe] = WeakSet()


def _renew_all() -> None:
    for instance in list(_objects):
        instance.renew()


os.register_at_fork(after_in_child=_renew_all)
