"""Waiting sentences -> the cheapest batches, each of one encoder, and how long one will take.

Batches are padded here, in the event loop's thread, whose processor's cache has the sentences: in a session thread it
takes five times as long.
"""

import math
from dataclasses import dataclass, field
from typing import Self
from weakref import WeakKeyDictionary

from heedful.runtime.engine.calls import Ticket
from heedful.runtime.engine.encoder_session import EncoderSession
from heedful.text.arrays import Floats
from heedful.text.batch import Batch, Sentence, cheapest, collate

Vectors = Floats
Group = list[Ticket["EncodeItem", Vectors]]
"""Tickets of equal sentences."""

WINDOW = 12
"""Batches planned at once: more means less padding, fewer admits new requests sooner. Of what 6 of SNLI's sentences
hold 6 % is padding, of 12 2 %."""


@dataclass(slots=True, eq=False)
class EncodeItem:
    encoder: EncoderSession
    sentence: Sentence
    cost: int = field(init=False)

    def __post_init__(self) -> None:
        # Ids may be pieces: the transformer dominates the cost.
        self.cost = self.encoder.cost(self.sentence.ids.size)

    @property
    def share(self) -> float:
        """Share of a window filled with sentences of its length."""
        return 1 / (WINDOW * max(1, self.encoder.budget // self.cost))


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch to run."""

    encoder: EncoderSession
    groups: list[Group]  # one for each of the batch's sentences
    batch: Batch
    small: bool  # whether it is of small calls

    @classmethod
    def of(cls, encoder: EncoderSession, groups: list[Group], *, small: bool) -> Self:
        return cls(encoder, groups, collate([group[0].item.sentence for group in groups]), small)

    def unanswered(self) -> Self | None:
        """The batch without sentences of finished calls; None if nothing is left."""
        groups = [[t for t in group if not t.call.finished] for group in self.groups]
        if all(groups):
            return self
        left = [group for group in groups if group]
        return self.of(self.encoder, left, small=self.small) if left else None


class Pace:
    """What a batch costs in seconds, by each encoder's latest batch of one sentence."""

    def __init__(self) -> None:
        self._by_cost: WeakKeyDictionary[EncoderSession, float] = WeakKeyDictionary()

    def measured(self, encoder: EncoderSession, cost: int, seconds: float) -> None:
        """A batch of this cost took so long."""
        self._by_cost[encoder] = seconds / (encoder.overhead + cost)

    def seconds(self, encoder: EncoderSession, cost: int) -> float:
        """Of a batch of this cost; infinite before one is measured."""
        return self._by_cost.get(encoder, math.inf) * (encoder.overhead + cost)


def plan(tickets: list[Ticket[EncodeItem, Vectors]]) -> list[PlannedBatch]:
    """The cheapest batches, each of one encoder, and of small calls or of others."""
    if len(tickets) == 1:
        [one] = tickets
        return [PlannedBatch.of(one.item.encoder, [[one]], small=one.call.small)]
    return [
        PlannedBatch.of(encoder, [groups[i] for i in batch], small=small)
        for (encoder, small), groups in _by_encoder(tickets).items()
        for batch in cheapest(
            [group[0].item.cost for group in groups], encoder.budget, encoder.overhead
        )
    ]


def _by_encoder(
    tickets: list[Ticket[EncodeItem, Vectors]],
) -> dict[tuple[EncoderSession, bool], list[Group]]:
    """Tickets by encoder and by whether their calls are small, grouped by equal sentences."""
    groups: dict[tuple[EncoderSession, bool], dict[bytes, Group]] = {}
    for ticket in tickets:
        of_encoder = groups.setdefault((ticket.item.encoder, ticket.call.small), {})
        of_encoder.setdefault(ticket.item.sentence.key, []).append(ticket)
    return {encoder: list(equal.values()) for encoder, equal in groups.items()}
