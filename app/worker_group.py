"""The serving processes behind one port, and the channels between them and the supervisor."""

import contextlib
import socket
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from heedful.app.messages import FromSupervisor, FromWorker

CONNECTION_ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """The group of serving processes this one belongs to."""

    size: int
    metrics: Path
    """Folder in which every process counts."""
    started: int
    """Start of the first process, in seconds since the epoch."""


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
