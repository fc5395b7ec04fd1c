"""What the processes of one service share: memory in which each process writes its slot, and all of them read."""

import ctypes
import mmap
import time

from heedful.app.observability.counts import PART_BYTES


class Slot(ctypes.Structure):
    """One process's part of the table, which only that process writes while it runs, but for `pid`.

    Times are of the monotonic clock, which all processes share.
    """

    table: "ProcessTable"
    index: int
    pid: int  # 0 while there is no such process
    heartbeat: float
    ready: bool
    ready_since: float  # when it could answer for the first time; 0 before
    models: int  # a hash of their names and versions
    reloads_asked: int  # how many reloads of all processes it has asked for
    reloads_done: (
        int  # `ProcessTable.reloads_asked` when the reload began that it has finished last
    )
    reason: bytes  # why it did not start
    _fields_ = (
        ("pid", ctypes.c_int64),
        ("heartbeat", ctypes.c_double),
        ("ready", ctypes.c_bool),
        ("ready_since", ctypes.c_double),
        ("models", ctypes.c_int64),
        ("reloads_asked", ctypes.c_int64),
        ("reloads_done", ctypes.c_int64),
        ("reason", ctypes.c_char * 1000),
    )

    def begin(self, heartbeat: float) -> None:
        """For a new process. The reloads that the one before has asked for stay counted."""
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
    def reloads_asked(self) -> int:
        """By all processes. Each counts its own, so that none is lost."""
        return sum(slot.reloads_asked for slot in (*self.slots, self.parent))

    def ready(self) -> list[Slot]:
        """Those of the processes that can answer; one that is silent for half of the hang timeout cannot."""
        oldest = time.monotonic() - self._hang_timeout / 2
        return [slot for slot in self.slots if slot.ready and slot.heartbeat > oldest]

    def status(self) -> str | None:
        """None when every serving process is ready, otherwise how many are. One that is alone says so itself."""
        ready, size = len(self.ready()), len(self.slots)
        return None if ready == size or size == 1 else f"{ready} of {size} serving processes are up"

    def reloaded(self, asked: int) -> bool:
        """Whether every process that runs has done the first `asked` reloads."""
        return all(slot.reloads_done >= asked for slot in self.slots if slot.pid)
