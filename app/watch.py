"""The requests in hand: their time limit, and whether their clients are still there.

One timer looks after all of them. A timer and a task of its own cost a request as much as the reading
of its body, and nearly all are answered before either has anything to say.
"""

import asyncio
from types import TracebackType
from typing import Self

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from heedful.runtime.errors import TimedOut

TICK = 0.05
"""Seconds between two looks: a time limit is kept to this, and as long nobody is missed."""


class Watch:
    """Ends what lasts longer than `limit` seconds, or is asked for by a client that has gone."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._hands: dict[Hand, None] = {}  # the oldest first
        self._timer: asyncio.TimerHandle | None = None

    def over(self, receive: Receive) -> "Hand":
        """A context to answer one request in, by the task that enters it."""
        return Hand(self, receive)

    def add(self, hand: "Hand") -> None:
        self._hands[hand] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK, self._look)

    def remove(self, hand: "Hand") -> None:
        self._hands.pop(hand, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for hand in list(self._hands):
            if now - hand.started >= self.limit:
                limit = f"not answered within {self.limit:g} s; send fewer inputs, or try later"
                hand.end(TimedOut(limit))
            else:
                hand.watch()
        self._timer = loop.call_later(TICK, self._look) if self._hands else None


class Hand:
    """One request. Ending it cancels what is inside, and the context raises the reason instead:
    TimedOut or ClientDisconnect."""

    __slots__ = (
        "_cancelling",
        "_reason",
        "_receive",
        "_task",
        "_watch",
        "_watcher",
        "read",
        "started",
    )

    def __init__(self, watch: Watch, receive: Receive) -> None:
        self._watch, self._receive = watch, receive
        self._reason: Exception | None = None
        self._watcher: asyncio.Task[None] | None = None
        self.read = False
        """Whether the body has been read: what comes behind it tells that the client has gone."""

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None, "requests are answered in tasks"
        self._task, self._cancelling = task, task.cancelling()
        self.started = asyncio.get_running_loop().time()
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
        # As asyncio.timeout does it: a cancellation that came from elsewhere too goes on.
        if (
            self._reason
            and self._task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise self._reason from None

    def end(self, reason: Exception) -> None:
        """Cancel the task, once."""
        if self._reason is None:
            self._reason = reason
            self._task.cancel()

    def watch(self) -> None:
        """Listen for the client's leave."""
        if self.read and self._watcher is None:
            self._watcher = asyncio.create_task(self._wait())

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.end(ClientDisconnect())
