"""Sentences that wait get an answer, whatever is raised while their batch is made."""

import logging
from collections.abc import Sequence
from itertools import chain
from types import TracebackType

from heedful.runtime.engine.batch_plan import Group
from heedful.runtime.errors import InferenceFailed

log = logging.getLogger(__name__)


class Answered:
    """Fail the sentences where a bug of ours or of the graph raises: their callers would wait for ever."""

    __slots__ = ("_groups",)

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        log.exception("%d sentences are lost", sum(map(len, self._groups)))
        fail(self._groups)
        return True


def fail(groups: Sequence[Group]) -> None:
    """Answer every sentence of the groups with InferenceFailed."""
    for ticket in chain.from_iterable(groups):
        ticket.call.fail(InferenceFailed("the model failed on this input"))
