"""Requests in flight: their time limit, and whether their clients are still connected.

One timer watches all of them. A timer and a task per request would cost as much as reading the body,
and most requests finish before either is needed.
"""

import asyncio
from types import TracebackType
from typing import Self

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from heedful.runtime.errors import TimedOut

POLL_SECONDS = 0.05
"""Polling interval. A timeout is noticed up to this late, a disconnect up to twice as late."""


class Watch:
    """Cancels requests that exceed `limit` seconds, and those whose client has disconnected."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._requests: dict[InFlightRequest, None] = {}  # the oldest first
        self._timer: asyncio.TimerHandle | None = None

    def guard(self, receive: Receive) -> "InFlightRequest":
        """A context for answering one request, entered by its task."""
        return InFlightRequest(self, receive)

    def add(self, request: "InFlightRequest") -> None:
        self._requests[request] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._poll)

    def remove(self, request: "InFlightRequest") -> None:
        self._requests.pop(request, None)

    def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for request in list(self._requests):
            if now - request.started >= self.limit:
                limit = f"not answered within {self.limit:g} s; send fewer inputs, or try later"
                request.cancel(TimedOut(limit))
            elif now - request.started >= POLL_SECONDS:  # most are answered before
                request.watch_client()
        self._timer = loop.call_later(POLL_SECONDS, self._poll) if self._requests else None


class InFlightRequest:
    """One request. Cancelling it ends its context with the reason: TimedOut or ClientDisconnect."""

    __slots__ = (
        "_cancelling",
        "_reason",
        "_receive",
        "_task",
        "_watch",
        "_watcher",
        "body_read",
        "started",
    )

    def __init__(self, watch: Watch, receive: Receive) -> None:
        self._watch, self._receive = watch, receive
        self._reason: Exception | None = None
        self._watcher: asyncio.Task[None] | None = None
        self.body_read = False
        """Set once the body has been read: the next message then is the disconnect."""

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None, "requests are answered in tasks"
        self._task, self._cancelling = task, task.cancelling()
        self.started = loop.time()
        self._watch.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._watch.remove(self)
        if self._watcher:
            self._watcher.cancel()
        # Like asyncio.timeout: a cancellation from elsewhere propagates.
        if (
            self._reason
            and self._task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise self._reason from None

    def cancel(self, reason: Exception) -> None:
        """Cancel the task, once."""
        if self._reason is None:
            self._reason = reason
            self._task.cancel()

    def watch_client(self) -> None:
        """Cancel when the client disconnects."""
        if self.body_read and self._watcher is None:
            self._watcher = asyncio.create_task(self._wait_for_disconnect())

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.cancel(ClientDisconnect())
