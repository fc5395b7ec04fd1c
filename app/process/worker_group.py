"""The serving processes behind one port, and the channels between them and the supervisor."""

import contextlib
import mmap
import os
import pickle
import resource
import socket
import time
from dataclasses import dataclass, field
from typing import Self

from heedful.app.process.messages import Message

CONNECTION_ID_BYTES = 8
MESSAGE_BYTES = 1 << 17  # below the system's limit on one packet
MAX_DESCRIPTORS = 1 << 20
RESERVE = 64
"""Descriptors that a process needs for other things than connections."""

BUSY, SENDING = -1, -2
"""States of a connection that has a request; that has been sent part of an answer. The state of one without a request
is the number of bytes that have been read of it: if more were read by a process that died, these began a request.
"""


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """The group of serving processes this one belongs to. They share what the supervisor has opened."""

    size: int
    started: int
    """Start of the first process, in seconds since the epoch."""
    counts: tuple[int, ...]
    """Anonymous files in memory: the supervisor counts in the first, each process in one of the others."""
    states: memoryview
    """An integer of 8 bytes per connection, by its id: BUSY, SENDING, or the bytes read of it."""
    slot: int = 0
    """This process's index in `counts`."""

    @classmethod
    def create(cls, size: int) -> Self:
        counts = tuple(os.memfd_create("heedful") for _ in range(size + 1))
        states = memoryview(mmap.mmap(-1, 8 * descriptors())).cast("q")
        return cls(size, int(time.time()), counts, states)


def descriptors() -> int:
    """How many descriptors a process may have."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_DESCRIPTORS if limit == resource.RLIM_INFINITY else min(limit, MAX_DESCRIPTORS)


@dataclass(frozen=True, slots=True)
class Link:
    """One end of the two channels between a serving process and the supervisor."""

    connections: socket.socket
    """Clients' accepted connections, each with its id in CONNECTION_ID_BYTES."""
    control: socket.socket
    """Messages in both directions, a packet each."""
    slot: int

    @classmethod
    def pair(cls, slot: int) -> tuple[Self, Self]:
        """The supervisor's end, which never blocks, and the process's. Raises OSError."""
        connections = socket.socketpair()
        control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (*connections, control[0]):
            end.setblocking(False)
        return cls(connections[0], control[0], slot), cls(connections[1], control[1], slot)

    def send(self, message: Message) -> None:
        """Does nothing when the other end has died, or hangs: it is replaced."""
        with contextlib.suppress(OSError):
            self.control.send(pickle.dumps(message))

    def receive(self) -> Message | None:
        """The next message, without waiting. Raises EOFError when the other end has died."""
        try:
            packet = self.control.recv(MESSAGE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            raise EOFError from error
        if not packet:
            raise EOFError
        message: Message = pickle.loads(packet)
        return message

    def close(self) -> None:
        self.connections.close()
        self.control.close()


@dataclass(eq=False)
class WorkerProcess:
    """A serving process, as the supervisor sees it."""

    pid: int
    link: Link
    heard: float
    """When it last sent a message; before its first one, when that is due."""
    connections: dict[int, socket.socket] = field(default_factory=dict)
    """Its clients' connections by id, which is the supervisor's descriptor."""
    ready: bool = False
    models: str = ""
    """A hash of its models' names and versions."""
    differs: bool = False
    """Had loaded other models than the processes that served when it started."""
    silent: bool = False
    """Not heard of for a third of the time after which it counts as hung."""
    leaving: bool = False
    killed: bool = False
    """Sent SIGKILL, and still to be reaped."""
    first_ready: float | None = None
    """When it became ready for the first time."""
