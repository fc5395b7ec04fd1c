"""Two steps of an inference, each done in two ways: for an event loop, or by the caller (runtime.engine.direct)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from heedful.runtime.engine.batch_plan import Vectors
from heedful.runtime.engine.encoder_session import EncoderSession
from heedful.text.batch import Sentence
from heedful.text.parse import Parse, ParseJob


class ParseStep(Protocol):
    async def get(
        self, jobs: Sequence[ParseJob], *, bulk: bool = False, alone: bool = False
    ) -> list[Parse]:
        """One parse per job, in order. Raises InferenceFailed, Unavailable."""

    async def pause(self) -> None:
        """Let others go on, in the middle of a long step."""


@dataclass(frozen=True, slots=True)
class Encoded:
    vectors: Vectors  # (N, D)
    queue: float  # seconds spent waiting
    inference: float  # seconds spent in the session, by the batches that held the sentences


class EncodeStep(Protocol):
    async def encode(
        self,
        encoder: EncoderSession,
        sentences: Sequence[Sentence],
        *,
        bulk: bool = False,
        alone: bool = False,
    ) -> Encoded:
        """The sentences' vectors, in order, not normalised. Raises InferenceFailed, Unavailable."""
