"""Several serving processes behind one port: what one of them knows of the others."""

import socket
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

NUMBER = 8


@dataclass(frozen=True, slots=True)
class Crew:
    """The processes of which this one is."""

    size: int
    metrics: Path
    """The folder in which each of them counts."""
    started: int
    """When the first was started, in seconds of the epoch."""


@dataclass(frozen=True, slots=True)
class Link:
    """One end of what joins a serving process to the supervisor."""

    connections: socket.socket
    """Down: clients' connections, accepted, each with its number in NUMBER bytes."""
    words: Connection
    """Both ways, tuples of a word and its object.

    Up: ("ready", whether it is), ("failed", why it does not start), ("closed", a connection's number),
    ("sending", (a connection's number, whether a part of its answer is still to be sent)),
    ("leaving", None) when it takes no more of them, ("reload", None) to ask for one, ("reloaded",
    Reloaded, or None where it could not).
    Down: ("company", (ready, wanted)), ("reload", None), ("tell", Reloaded) to count and log it,
    ("reloaded", as above) to who asked.
    """

    def close(self) -> None:
        self.connections.close()
        self.words.close()
