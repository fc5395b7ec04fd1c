"""The serving processes behind one port, and the messages between them and the supervisor."""

import contextlib
import socket
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from heedful.runtime.service import Reloaded

CONNECTION_ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """The group of serving processes this one belongs to."""

    size: int
    metrics: Path
    """Folder in which every process counts."""
    started: int
    """Start of the first process, in seconds since the epoch."""


class WorkerReady(NamedTuple):
    """To the supervisor: this process became ready, or is no longer."""

    ready: bool


class StartFailed(NamedTuple):
    """To the supervisor: this process cannot start."""

    reason: str


class ConnectionClosed(NamedTuple):
    """To the supervisor: this process is done with a connection."""

    connection: int


class AnswerPending(NamedTuple):
    """To the supervisor: whether part of an answer on this connection is still unsent."""

    connection: int
    pending: bool


class Leaving(NamedTuple):
    """To the supervisor: this process accepts no more connections."""


class ReloadRequest(NamedTuple):
    """To the supervisor: reload the bundles in every process."""


class WorkerReloaded(NamedTuple):
    """To the supervisor: the result of ReloadNow; None when it failed."""

    result: Reloaded | None


class PeerStatus(NamedTuple):
    """To a serving process: how many of the group are ready."""

    ready: int
    wanted: int


class ReloadNow(NamedTuple):
    """To a serving process: reload the bundles."""


class ReloadFinished(NamedTuple):
    """To one serving process, which logs the result; None when no process could reload."""

    result: Reloaded | None
    requested: bool
    """Whether this process has sent ReloadRequest and waits for the result."""


FromWorker = (
    WorkerReady
    | StartFailed
    | ConnectionClosed
    | AnswerPending
    | Leaving
    | ReloadRequest
    | WorkerReloaded
)
FromSupervisor = PeerStatus | ReloadNow | ReloadFinished


@dataclass(frozen=True, slots=True)
class Link:
    """One end of the two channels between a serving process and the supervisor."""

    connections: socket.socket
    """Clients' accepted connections, each with its id in CONNECTION_ID_BYTES."""
    control: Connection
    """Messages in both directions."""

    def send(self, message: FromWorker | FromSupervisor) -> None:
        """Does nothing when the other end has died: its reader notices that."""
        with contextlib.suppress(OSError):
            self.control.send(message)

    def close(self) -> None:
        self.connections.close()
        self.control.close()


@dataclass(eq=False)
class WorkerProcess:
    """A serving process, as the supervisor sees it."""

    pid: int
    link: Link
    connections: dict[int, socket.socket] = field(default_factory=dict)
    """Its clients' connections by id."""
    pending: set[int] = field(default_factory=set)
    """Connections on which part of an answer has been sent."""
    ready: bool = False
    leaving: bool = False
    first_ready: float | None = None
    """When it became ready for the first time."""
