"""When dead serving processes are replaced, and when that helps no more."""

import time

from heedful.app.process.worker_group import WorkerProcess

MAX_DEATHS = 5
"""Consecutive deaths of processes less than STABLE_SECONDS after they became ready."""
STABLE_SECONDS = 3.0
MIN_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.1, 10.0


class Restarts:
    """The times at which the supervisor starts processes again."""

    def __init__(self) -> None:
        self._deaths = 0  # consecutive
        self._times: list[float] = []

    def __bool__(self) -> bool:
        return bool(self._times)

    def deadline(self) -> float | None:
        """The earliest."""
        return min(self._times, default=None)

    def due(self, now: float) -> int:
        """How many processes to start now."""
        later = [at for at in self._times if at > now]
        starts = len(self._times) - len(later)
        self._times = later
        return starts

    def later(self, seconds: float = MAX_BACKOFF_SECONDS) -> None:
        """Start a process after this time."""
        self._times.append(time.monotonic() + seconds)

    def clear(self) -> None:
        self._times.clear()

    def replace(self, dead: WorkerProcess, *, others_serve: bool) -> bool:
        """Start another process after a delay. False when processes die again and again.

        One that was never ready is no sign of that while others serve: a file has changed that they have read
        already, a bundle or the certificate.
        """
        if dead.first_ready is None and others_serve:
            self.later()
            return True
        ready_for = time.monotonic() - dead.first_ready if dead.first_ready is not None else 0.0
        self._deaths = 1 if ready_for > STABLE_SECONDS else self._deaths + 1
        if self._deaths > MAX_DEATHS:
            return False
        self.later(min(MIN_BACKOFF_SECONDS * 2.0 ** (self._deaths - 1), MAX_BACKOFF_SECONDS))
        return True
