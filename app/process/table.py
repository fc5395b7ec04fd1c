"""What the processes of one service share: memory in which each process writes its slot, and all of them read."""

import mmap
import time
from collections.abc import Sequence

from heedful.app.observability.counts import PART_BYTES

REASON_BYTES = 1000


class _Number:
    """A number of 8 bytes in a slot."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __get__(self, slot: "Slot", _: object = None) -> float:
        return slot.numbers[self._index]

    def __set__(self, slot: "Slot", value: float) -> None:
        slot.numbers[self._index] = value


class Slot:
    """One process's part of the table. Only that process writes it while it runs, but for `pid`."""

    pid = _Number(0)
    """0 while there is no such process. Times are of the monotonic clock, which all processes share."""
    heartbeat = _Number(1)
    ready_since = _Number(2)
    """0 until it answers for the first time."""
    ready = _Number(3)
    reloads_asked = _Number(4)
    """How many reloads of all processes it has asked for."""
    reloads_done = _Number(5)
    """`ProcessTable.reloads_asked` when the reload began that it has finished last."""
    models = _Number(6)
    """A hash of its models' names and versions."""
    NUMBERS = 7

    def __init__(self, table: "ProcessTable", index: int, memory: memoryview) -> None:
        self.table, self.index = table, index
        self.numbers = memory[: 8 * self.NUMBERS].cast("d")
        self._reason = memory[8 * self.NUMBERS :]

    def begin(self, heartbeat: float) -> None:
        """Forget the process that it was of, but for the reloads that that one has asked for."""
        self.pid = self.ready_since = self.ready = self.models = 0
        self.reloads_done = -1
        self.heartbeat = heartbeat
        self.reason = ""

    @property
    def reason(self) -> str:
        """Why the process did not start; "" if it did."""
        return bytes(self._reason).rstrip(b"\0").decode("utf-8", "ignore")

    @reason.setter
    def reason(self, text: str) -> None:
        self._reason[:] = text.encode("utf-8", "replace")[:REASON_BYTES].ljust(REASON_BYTES, b"\0")


class ProcessTable:
    """A slot for each serving process, and one for their parent."""

    def __init__(self, size: int, hang_timeout: float) -> None:
        self.started = int(time.time())  # seconds since the epoch
        self.counts = [memoryview(mmap.mmap(-1, PART_BYTES)) for _ in range(size + 1)]
        self._hang_timeout = hang_timeout
        length = 8 * Slot.NUMBERS + REASON_BYTES
        memory = memoryview(mmap.mmap(-1, (size + 1) * length))
        slots = [Slot(self, i, memory[i * length : (i + 1) * length]) for i in range(size + 1)]
        self.slots: Sequence[Slot] = slots[:size]
        self.parent = slots[size]

    @property
    def reloads_asked(self) -> int:
        """By all processes. Each counts its own, so that none is lost."""
        return int(sum(slot.reloads_asked for slot in (*self.slots, self.parent)))

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
