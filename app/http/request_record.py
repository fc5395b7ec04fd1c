"""Record: one request's data for its headers, its log line and the metrics."""

import random
import re
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Scope

from heedful.app.schemas import unknown_fields
from heedful.runtime.answers import Result

_KEY, _HEADERS = "heedful.record", "heedful.headers"
CLIENT_GONE = "heedful.client_gone"
"""In a scope of our server: a function that says whether the connection is closed."""
_VALID_ID = re.compile(r"[!-~]{1,128}")  # printable ASCII: safe in a header and in a log line


@dataclass(slots=True)
class Record:
    """One request, from its head to its last byte."""

    id: str
    route: str
    """A path that the service has, or "other": never a client's own text."""
    text_error: bool = False
    """Whether the `error` of its error is text."""
    model: str = "none"
    """A loaded model, "other" for an unknown name, "none" when the route needs no model."""
    media: str = ""
    """The media type of its body, in lower case and without parameters."""
    bulk: bool = False
    """Whether it waits while other requests do."""
    key: str | None = None
    """The name of its API key."""
    started: float = field(default_factory=time.perf_counter)  # seconds
    answered: float | None = None  # when the result was ready and writing began
    result: Result[Any] | None = None
    status: int | None = None  # of the answer, once that has begun
    refusal: str | None = None  # the error's code
    ignored: list[str] = field(default_factory=list)  # names of unknown fields

    def notes(self) -> dict[str, str]:
        """Headers that say what was done to the inputs."""
        found = {}
        if result := self.result:
            if result.truncated:
                found["X-Truncated"] = str(result.truncated)
            if result.averaged:
                found["X-Windows"] = str(result.averaged)
            if result.out_of_domain:
                found["X-Warning"] = _warning(result)
        if self.ignored and (names := unknown_fields.header(self.ignored)):
            found["X-Ignored-Fields"] = names
        return found

    def answer(self, result: Result[Any]) -> None:
        """Keep the service's result; only writing the answer remains."""
        self.result = result
        self.model = result.card.name
        self.answered = time.perf_counter()


def _warning(result: Result[Any]) -> str:
    """What a client should know of its inputs that the models do not read."""
    return (
        f"{result.out_of_domain} of {result.inputs} inputs are not in Latin script, or most of their words are "
        f"not in the vocabulary: {result.card.name} was trained on English, the answer means little"
    )


def new_id() -> str:
    """A request id. os.urandom would release the GIL to a session's thread, and wait to get it back."""
    return f"{random.getrandbits(128):032x}"


def request_id(scope: Scope) -> str:
    """The client's id if it has sent a valid one, else a new one."""
    sent = header(scope, b"x-request-id")
    return sent if sent and _VALID_ID.fullmatch(sent) else new_id()


def header(scope: Scope, name: bytes) -> str:
    """The first header with this lower-case name, or ""."""
    return _headers(scope).get(name, b"").decode("latin-1")


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """The first one of each name."""
    found: dict[bytes, bytes] | None = scope.get(_HEADERS)
    if found is None:
        found = scope[_HEADERS] = dict(reversed(scope["headers"]))
    return found


def accepts(scope: Scope, name: bytes) -> dict[str, float]:
    """What the client accepts by the headers of this lower-case name: "a;v=1;q=0.5, b" -> {"a;v=1": 0.5, "b": 1.0}.

    0 is the weight of what it does not accept, or of one that is no number. Several lines are one list (RFC 9110, 5.3).
    """
    found: dict[str, float] = {}
    if name not in _headers(scope):
        return found
    for key, line in scope["headers"]:
        if key == name:
            for offer in line.decode("latin-1").lower().split(","):
                what, *parameters = (part.strip() for part in offer.split(";"))
                weight = "1"
                for parameter in parameters:
                    if parameter.startswith("q="):
                        weight = parameter[2:]
                    else:
                        what += f";{parameter}"
                found[what] = _weight(weight)
    return found


def _weight(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        return 0.0


def attach(scope: Scope, record: Record) -> None:
    scope[_KEY] = record


def of(scope: Scope) -> Record:
    """The record that the outermost middleware attached."""
    record: Record = scope[_KEY]
    return record
