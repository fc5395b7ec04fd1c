"""Parsing and encoding in turn, where the event loop and the session threads share a core.

The parser and an encoder push each other's tables and code out of the core's caches. So what waits of large calls is
parsed together, then encoded together, and nothing of them is parsed meanwhile. Small calls wait for neither.
"""

from collections.abc import Callable

SENTENCES = 512
"""Sentences that are encoded even though more texts wait for the parser."""


class Phases:
    """What the large calls are at. For the event loop's thread only."""

    def __init__(self, one_core: bool) -> None:
        """`one_core` is whether the event loop and the session threads share a core; else nothing waits."""
        self.one_core = one_core
        self.parsing = False
        """Whether texts wait for the parser."""
        self.encoding = 0
        """Windows of large calls that session threads are at."""
        self._waiting: list[Callable[[], object]] = []

    def gathers(self, sentences: int) -> bool:
        """Whether more sentences than the waiting ones will soon be there to be encoded with them."""
        return self.one_core and self.parsing and not self.encoding and sentences < SENTENCES

    def resume(self) -> None:
        """Take the waiting steps unless something is being encoded."""
        if not self.encoding:
            waiting, self._waiting = self._waiting, []
            for step in waiting:
                step()

    def after_encoding(self, step: Callable[[], object]) -> None:
        """Take the step once nothing is being encoded: now, or later."""
        if self.encoding and self.one_core:
            self._waiting.append(step)
        else:
            step()
