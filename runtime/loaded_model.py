"""A bundle with its sessions: loaded, warm and ready to answer."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from heedful.runtime.bundle import ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8, HEAD, Bundle
from heedful.runtime.encoder_session import EncoderSession
from heedful.runtime.errors import InferenceFailed
from heedful.runtime.explain_graph import ExplainGraph
from heedful.runtime.graphs import encoder_feeds, head_inputs
from heedful.runtime.scheduler import Vectors
from heedful.runtime.session import Device, OrtSession, SessionThreads, takes_cuda
from heedful.text.batch import Sentence, collate
from heedful.text.parse import Parse
from heedful.text.trees import first

LADDER = (1, 8, 32, 128)
"""Sentence lengths to warm up with, alone and in a full batch."""


class LoadedModel:
    """A bundle with open sessions, which run in the caller's threads."""

    def __init__(self, bundle: Bundle, device: Device, threads: int) -> None:
        """Open the sessions, which blocks while graphs are optimised. Raises ProviderError."""
        self.card = bundle.card
        self.vocab = bundle.vocab
        files = bundle.files
        int8 = ENCODER_INT8 in files and not takes_cuda(device)
        self.precision: Literal["int8", "float32"] = "int8" if int8 else "float32"
        encoder, explain = (ENCODER_INT8, EXPLAIN_INT8) if int8 else (ENCODER, EXPLAIN)
        self.explain_graph = ExplainGraph(files, bundle.card, explain) if explain in files else None
        shared = self.explain_graph.shared if self.explain_graph else {}
        session = OrtSession(files[encoder], device, threads, shared, {ENCODER: files[ENCODER]})
        self.encoder = EncoderSession(bundle.card, session)
        self._head: OrtSession | None = None
        if bundle.card.kind != "embedding":
            self._head = OrtSession(files[HEAD], device, threads)

    async def warm(self, thread: SessionThreads) -> None:
        """Run a ladder of shapes, so that no request pays for the first run of one."""
        for length in sorted({min(length, self.card.max_tokens) for length in LADDER}):
            sentence = self.vocab.sentence(["a"] * length, np.arange(length))
            for size in (1, max(1, self.encoder.budget // self.encoder.cost(length))):
                feeds = encoder_feeds(self.card, collate([sentence] * size))
                vectors, _ = await thread.run(self.encoder.session, feeds)
                if self._head:
                    await self.logits(thread, *[vectors] * len(head_inputs(self.card)))

    def fit(self, parse: Parse) -> Parse:
        """The text, cut to the model's limit of word pieces."""
        fitting = self.vocab.fitting(parse.tokens)
        return parse if fitting == len(parse) else first(parse, fitting)

    def sentence(self, parse: Parse) -> Sentence:
        return self.vocab.sentence(parse.tokens, parse.heads)

    async def logits(
        self, thread: SessionThreads, *sides: Vectors
    ) -> tuple[npt.NDArray[np.float32], float]:
        """The head's logits (N, C), divided by the card's temperature, for one (N, D) array per side.

        Also gives the seconds that the head took.

        Raises InferenceFailed.
        """
        assert self._head is not None, "only models with a head are asked for logits"
        feeds = dict(zip(head_inputs(self.card), sides, strict=True))
        logits, seconds = await thread.run(self._head, feeds)
        if not np.isfinite(logits).all():
            raise InferenceFailed("the model gave NaN or infinity")
        return logits / np.float32(self.card.temperature), seconds
