"""Control messages between the supervisor and the serving processes."""

from typing import NamedTuple

from heedful.runtime.service import Reloaded

# From a serving process to the supervisor.


class Alive(NamedTuple):
    """Sent every second by the event loop, and at once when something of it changes."""

    ready: bool
    models: str
    """A hash of the models' names and versions."""


class StartFailed(NamedTuple):
    reason: str


class ConnectionClosed(NamedTuple):
    connection: int


class ConnectionLost(NamedTuple):
    """The process had no descriptor left for it: nobody has read from it."""

    connection: int


class Leaving(NamedTuple):
    """The process accepts no more connections."""


class ReloadRequest(NamedTuple):
    """Asks for a reload by every process."""


class WorkerReloaded(NamedTuple):
    result: Reloaded | None  # None when it could not


FromWorker = (
    Alive
    | StartFailed
    | ConnectionClosed
    | ConnectionLost
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

Message = FromWorker | FromSupervisor
