"""Graphs on their device: sessions, and the runners that say what batches for them cost."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import onnxruntime

from heedful.runtime.bundles.card import Card
from heedful.runtime.device import Resolved
from heedful.runtime.engine.graphs import Feeds, encoder_inputs
from heedful.runtime.errors import OutOfMemory, ProviderError
from heedful.text.arrays import Floats
from heedful.text.batch import Sentence, collate
from heedful.text.graph import CUDA, open_session
from heedful.text.kinds import HEAD_INPUTS
from heedful.text.vocab import UNKNOWN

T = TypeVar("T")

BUDGET, CUDA_BUDGET = 320, 16384
"""Cost limit of a batch, in tokens of a linear encoder. A token of a batch of 512 costs up to 9 % more on a core
with 2 MB of cache."""
OVERHEAD, CUDA_OVERHEAD = 64, 1024
"""Fixed cost of a batch, in tokens: 260 to 310 µs in ONNX Runtime, and what Python does for it; a token takes 8 to 12
(int8, one core)."""
QUADRATIC_FROM = 16
"""Up to this length a quadratic encoder costs no more than a linear one."""
HEAD_ROWS, HEAD_OVERHEAD = 64, 8
"""Rows of a batch of a head, 2 ms at most; and its fixed cost in rows."""
_NO_MEMORY = re.compile(
    "Available memory of|Failed to allocate memory|out of memory|_ALLOC_FAILED|bad_?alloc"
)
"""In messages of ONNX Runtime, from its arena, CUDA, cuBLAS, cuDNN and C++."""


class EncoderRunner:
    """A model's encoder: sentences in, vectors (D,) out, not scaled. A `text.batch.Runner`."""

    stage: Literal["inference"] = "inference"

    def __init__(self, card: Card, session: "OrtSession") -> None:
        self.card, self.session = card, session
        self.name = card.name
        self._inputs = list(encoder_inputs(card))
        on_cuda = session.provider == CUDA
        self.budget = CUDA_BUDGET if on_cuda else BUDGET
        self.overhead = CUDA_OVERHEAD if on_cuda else OVERHEAD

    def costs(self, sentences: Sequence[Sentence]) -> list[int]:
        """Each sentence's cost in a batch whose longest it is. Ids may be pieces: the transformer costs most."""
        lengths = [len(sentence.ids) for sentence in sentences]
        if self.card.cost == "linear":
            return lengths
        return [max(length, math.ceil(length * length / QUADRATIC_FROM)) for length in lengths]

    def shape(self, sentences: Sequence[Sentence]) -> tuple[int, float]:
        """The tokens of a batch, and the share of ids that is padding."""
        sizes = [len(sentence.ids) for sentence in sentences]
        tokens = sum([len(sentence.heads) for sentence in sentences])
        return tokens, 1 - sum(sizes) / (len(sizes) * max(sizes))

    def prepare(self, sentences: Sequence[Sentence]) -> Feeds:
        return collate(sentences).feeds(self._inputs, self.card.alpha)

    def run(self, feeds: Feeds) -> list[Floats]:
        """B vectors (D,)."""
        return list(self.session.run(feeds))

    def probe(self) -> None:
        """Run the encoder on a single token. Raises what a broken session raises."""
        self.run(self.prepare([Sentence(np.array([UNKNOWN]), np.array([0]))]))


@dataclass(slots=True, eq=False)
class FunctionRunner(Generic[T]):
    """A `text.batch.Runner` whose `run` and `costs` are functions of a batch of items, which need no preparation."""

    run: Callable[[Sequence[Any]], Sequence[T]]
    budget: int
    overhead: int
    costs: Callable[[Sequence[Any]], list[int]] = lambda items: [1] * len(items)
    stage: Literal["inference"] = "inference"
    name: str = "a graph"

    def prepare(self, items: Sequence[Any]) -> Sequence[Any]:
        return items


def head_runner(card: Card, session: "OrtSession") -> FunctionRunner[Floats]:
    """A model's head. An item is a vector (D,) for each side, its output logits (C,)."""

    def run(rows: Sequence[Sequence[Floats]]) -> Sequence[Floats]:
        sides = zip(HEAD_INPUTS[card.kind], zip(*rows, strict=True), strict=True)
        logits: Floats = session.run({name: np.stack(side) for name, side in sides})
        return list(logits)

    return FunctionRunner(run, HEAD_ROWS, HEAD_OVERHEAD, name=f"the head of {card.name}")


class OrtSession:
    """A graph in ONNX Runtime on this device.

    `tensors` and `files` are those of `open_session`. Raises GraphError where the graph cannot be opened, for example
    for want of memory, and ProviderError where it runs on another device.
    """

    def __init__(
        self,
        graph: bytes,
        device: Resolved,
        threads: int,
        tensors: Mapping[str, onnxruntime.OrtValue] = {},
        files: Mapping[str, bytes] = {},
    ) -> None:
        cuda = device == "cuda"
        if cuda:
            onnxruntime.preload_dlls()  # from the nvidia wheels, where they are installed
            tensors = {}  # the session copies the weights to the GPU
        self._tensors = tensors  # a session on a CPU only borrows them
        self.graph = open_session(graph, threads=threads, cuda=cuda, files=files, tensors=tensors)
        self.provider: str = self.graph.get_providers()[0]
        if cuda and self.provider != CUDA:
            raise ProviderError(f"device is cuda, but ONNX Runtime runs on {self.provider}")

    def run(self, feeds: Feeds) -> Floats:
        """The graph's output. Raises OutOfMemory, and ONNX Runtime's other errors."""
        output: Floats
        try:
            (output,) = self.graph.run(None, feeds)
        except Exception as error:
            if _NO_MEMORY.search(str(error)):
                raise OutOfMemory(
                    "the device has no memory left for this text: send a shorter one, or try again"
                ) from error
            raise
        return output
