"""Memory that the processes of a service share: each process writes its slot, and all read the slots."""

import ctypes
import mmap
import time

from heedful.app.observability.counts import PART_BYTES


class Slot(ctypes.Structure):
    """A process's part of the table. While it runs, only it writes there; the parent writes `pid`.

    Times are of the monotonic clock, which all processes share.
    """

    table: "ProcessTable"
    index: int
    pid: int  # 0 while there is no such process
    heartbeat: float
    ready: bool
    ready_since: float  # when it could answer for the first time; 0 before
    models: int  # a hash of their names and versions
    reloads_requested: int  # by this process, of all processes
    reloads_done: int  # `ProcessTable.reloads_requested` at the start of its last complete reload
    reason: bytes  # why it did not start
    ended_seconds: float  # in the parent's slot: the processor time of processes that have ended
    _fields_ = (
        ("pid", ctypes.c_int64),
        ("heartbeat", ctypes.c_double),
        ("ready", ctypes.c_bool),
        ("ready_since", ctypes.c_double),
        ("models", ctypes.c_int64),
        ("reloads_requested", ctypes.c_int64),
        ("reloads_done", ctypes.c_int64),
        ("reason", ctypes.c_char * 1000),
        ("ended_seconds", ctypes.c_double),
    )

    def begin(self, heartbeat: float) -> None:
        """Reset the slot for a new process. The reloads that its predecessor has requested stay counted."""
        self.pid = self.models = 0
        self.ready, self.ready_since, self.reason = False, 0.0, b""
        self.heartbeat, self.reloads_done = heartbeat, -1


class ProcessTable:
    """A slot for each serving process, and one for their parent; and a part of the metrics for each."""

    def __init__(self, size: int, hang_timeout: float) -> None:
        self.started = int(time.time())  # seconds since the epoch
        self._hang_timeout = hang_timeout
        memory = mmap.mmap(-1, (size + 1) * ctypes.sizeof(Slot))
        slots = list((Slot * (size + 1)).from_buffer(memory))
        for index, slot in enumerate(slots):
            slot.table, slot.index = self, index
        self.slots, self.parent = slots[:size], slots[size]
        self.counts = [memoryview(mmap.mmap(-1, PART_BYTES)) for _ in slots]

    @property
    def reloads_requested(self) -> int:
        """Reloads that all processes have requested. Each writes its own count, so that none is lost."""
        return sum(slot.reloads_requested for slot in (*self.slots, self.parent))

    def ready(self) -> list[Slot]:
        """The slots of processes that can answer: not of those that were silent for half of the hang timeout."""
        oldest = time.monotonic() - self._hang_timeout / 2
        return [slot for slot in self.slots if slot.ready and slot.heartbeat > oldest]

    def status(self) -> str | None:
        """None when all serving processes are ready, else how many are; also None where there is only one process."""
        ready, size = len(self.ready()), len(self.slots)
        return None if ready == size or size == 1 else f"{ready} of {size} serving processes are up"

    def reloaded(self, count: int) -> bool:
        """Whether each running process has done the first `count` reloads."""
        return all(slot.reloads_done >= count for slot in self.slots if slot.pid)
