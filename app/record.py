"""Record: what one request leaves behind for its headers, its log line and the metrics."""

import random
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Scope

from heedful.runtime.answers import Result

_KEY = "heedful.record"


@dataclass(slots=True)
class Record:
    """One request, from its first byte to its last."""

    id: str
    route: str
    """A path the service has, or "other": never what a client chose."""
    model: str = "none"
    """A loaded model, "other" for a name that is none, "none" where the route needs no model."""
    started: float = field(default_factory=time.perf_counter)  # seconds
    answered: float | None = None  # when the service was done and the answer's writing began
    result: Result[Any] | None = None
    refusal: str | None = None  # the error's code

    def answer(self, result: Result[Any]) -> None:
        """The service has answered: what follows is the writing of the answer."""
        self.result = result
        self.model = result.card.name
        self.answered = time.perf_counter()


def new_id() -> str:
    """A request id. Not by os.urandom, which lets go of the interpreter's lock: a session's thread then
    takes it."""
    return f"{random.getrandbits(128):032x}"


def header(scope: Scope, name: bytes) -> str:
    """The first header of that lower-case name, "" where there is none."""
    for key, value in scope["headers"]:
        if key == name:
            found: str = value.decode("latin-1")
            return found
    return ""


def attach(scope: Scope, record: Record) -> None:
    scope[_KEY] = record


def of(scope: Scope) -> Record:
    """The record that the outermost middleware attached."""
    record: Record = scope[_KEY]
    return record
