"""Control messages between the supervisor and the serving processes."""

from typing import NamedTuple

from heedful.runtime.service import Reloaded

# From a serving process to the supervisor.


class Ready(NamedTuple):
    """Sent when the process becomes ready, and when it stops being so."""

    ready: bool


class StartFailed(NamedTuple):
    reason: str


class ConnectionClosed(NamedTuple):
    connection: int


class AnswerPending(NamedTuple):
    """Whether part of an answer on this connection is still unsent."""

    connection: int
    pending: bool


class Leaving(NamedTuple):
    """The process accepts no more connections."""


class ReloadRequest(NamedTuple):
    """Asks for a reload by every process."""


class WorkerReloaded(NamedTuple):
    result: Reloaded | None  # None when it could not


FromWorker = (
    Ready
    | StartFailed
    | ConnectionClosed
    | AnswerPending
    | Leaving
    | ReloadRequest
    | WorkerReloaded
)

# From the supervisor to a serving process.


class PeerStatus(NamedTuple):
    """How many processes of the group are ready."""

    ready: int
    wanted: int


class ReloadNow(NamedTuple):
    """To every process."""


class ReloadFinished(NamedTuple):
    """To one process, which logs the result; `requested` if it has sent a ReloadRequest."""

    result: Reloaded | None  # None when no process could
    requested: bool


FromSupervisor = PeerStatus | ReloadNow | ReloadFinished
