"""One request's runs of an explain graph: vectors, scores, and the score that evidence is measured on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.runtime.answers import cosines, expected_score, normalise, probabilities
from heedful.runtime.engine.graphs import Feeds, encoder_feeds, head_inputs
from heedful.runtime.engine.session import Session, SessionThreads
from heedful.runtime.errors import BadInput
from heedful.runtime.explain.graph import SCALE, ExplainGraph, ExplainOutputs
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.arrays import Doubles, Floats
from heedful.text.batch import Sentence, cheapest, collate
from heedful.text.graph import CPU

Run = tuple[Session[Any], Feeds]

BUDGET, LEAST, OVERHEAD = 1024, 64, 16
"""Tokens of a batch of vectors, padding included: at most, and at least where a batch is split over
threads; and the fixed cost of a batch in tokens."""


MAX_ALPHA = 100.0
"""Of the distances' weight."""

UNCHANGED = 1e-5
"""A sentence's vector has not changed where no value moves by more than this share of the largest one: a sum over
fewer tokens, or in another batch, rounds otherwise."""


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """`priors` to switch off (False) or leave on, `k` tokens to delete for faithfulness.

    Raises BadInput for a value that no model can take; which priors a model has, `explain` checks.
    """

    priors: Mapping[str, bool] = field(default_factory=dict)
    alpha: float | None = None
    ablation: bool = False
    faithfulness: bool = False
    k: int = 1
    evidence: bool = False
    gradients: bool = False  # with evidence
    curves: bool = False
    trust: bool = False

    def __post_init__(self) -> None:
        for name, value in self.priors.items():
            if not isinstance(value, bool):
                raise BadInput(f"priors.{name} is {value!r}: give True or False", param="priors")
        if self.alpha is not None and not 0 <= self.alpha <= MAX_ALPHA:
            said = f"alpha is {self.alpha}: give 0 to {MAX_ALPHA:g}"
            raise BadInput(said, param="alpha")
        if self.k < 1:
            raise BadInput(f"k is {self.k}: give at least 1", param="k")


def explain_graph_of(model: LoadedModel) -> ExplainGraph:
    """Raises BadInput where the bundle has none."""
    if model.explain_graph is None:
        raise BadInput(
            f"{model.card.name} cannot be explained: its bundle has no explain.onnx; "
            "export it again, or name another model",
            param="model",
            code="no_explanation",
        )
    return model.explain_graph


@dataclass(slots=True)
class _Vectors:
    """The explain graph as a session that gives vectors alone."""

    graph: ExplainGraph
    provider: str = CPU

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
        return self.graph.vectors(feeds)


@dataclass(slots=True)
class _GradientVectors:
    """The float32 explain graph, whose word vectors can be scaled: for integrated gradients."""

    model: LoadedModel
    provider: str = CPU

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
        return self.model.gradient_graph.vectors(feeds)


class ExplainRun:
    """The model with the priors of one request, and the seconds spent in its sessions."""

    def __init__(
        self, model: LoadedModel, threads: SessionThreads, options: ExplainOptions
    ) -> None:
        self.explain_graph = explain_graph_of(model)
        self.priors = {name: options.priors.get(name, True) for name in self.explain_graph.priors}
        self.alpha = model.card.alpha if options.alpha is None else options.alpha
        self.k = options.k
        self.seconds = 0.0
        self.model, self._threads = model, threads
        self._as_served = all(self.priors.values()) and self.alpha == model.card.alpha

    async def encode(self, sentences: Sequence[Sentence], off: str | None = None) -> ExplainOutputs:
        """Run the graph on sentences of one length, without the prior `off`."""
        switches = {name: on and name != off for name, on in self.priors.items()}
        feeds = self.explain_graph.feeds(collate(sentences), switches, self.alpha)
        found, seconds = await self._threads.run(self.explain_graph, feeds)
        self.seconds += seconds
        return found

    async def encode_and_shorten(
        self, sentences: Sequence[Sentence]
    ) -> tuple[list[ExplainOutputs], list[Floats]]:
        """The graph's outputs for each sentence, and its vectors (L, D) without each token, side by side.

        A sentence of one token has no vectors, (0, D).
        """
        counts = [len(one) if len(one) > 1 else 0 for one in sentences]
        shorter = [
            one.without([i])
            for one, count in zip(sentences, counts, strict=True)
            for i in range(count)
        ]
        graph, batches = self.explain_graph, self._batches(shorter)
        whole = [(graph, graph.feeds(collate([one]), self.priors, self.alpha)) for one in sentences]
        found = await self._run_all([*whole, *self._vector_runs(shorter, batches)])
        vectors = self._in_order(batches, found[len(whole) :])
        return found[: len(whole)], np.split(vectors, np.cumsum(counts)[:-1])

    async def vectors(self, sentences: Sequence[Sentence]) -> Floats:
        """Vectors (N, D) of sentences of any lengths, in batches that run on all threads."""
        batches = self._batches(sentences)
        found = await self._run_all(self._vector_runs(sentences, batches))
        return self._in_order(batches, found)

    def _batches(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        lengths = [len(one.ids) for one in sentences]
        return cheapest(lengths, self._budget(sum(lengths)), OVERHEAD)

    def _vector_runs(
        self, sentences: Sequence[Sentence], batches: Sequence[Sequence[int]]
    ) -> Iterator[Run]:
        """What gives the vectors of each batch."""
        encoder, graph = self.model.encoder.session, self.explain_graph
        for batch in batches:
            collated = collate([sentences[i] for i in batch])
            if self._as_served and encoder.provider == CPU:  # the same weights, but faster
                yield encoder, encoder_feeds(self.model.card, collated)
            else:
                yield _Vectors(graph), graph.feeds(collated, self.priors, self.alpha)

    def _in_order(self, batches: Sequence[Sequence[int]], found: Sequence[Floats]) -> Floats:
        """The vectors (N, D) of all batches, in the order of the sentences."""
        size = sum(map(len, batches))
        vectors = np.empty((size, self.model.card.width), np.float32)
        for batch, one in zip(batches, found, strict=True):
            vectors[batch] = one
        return vectors

    async def scaled(self, sentence: Sentence, scales: Floats) -> Floats:
        """Vectors (N, D) in float32 of a sentence whose word vectors are scaled by each row of `scales` (N, L)."""
        most = max(1, self._budget(scales.size) // len(sentence))
        session, runs = _GradientVectors(self.model), []
        for start in range(0, len(scales), most):
            rows = scales[start : start + most]
            collated = collate([sentence] * len(rows))
            feeds = self.explain_graph.feeds(collated, self.priors, self.alpha) | {SCALE: rows}
            runs.append((session, feeds))
        return np.concatenate(await self._run_all(runs))

    def _budget(self, tokens: int) -> int:
        """Tokens of a batch, where there are so many in all."""
        return min(BUDGET, max(LEAST, -(-tokens // self._threads.size)))

    async def _run_all(self, runs: Iterable[Run]) -> list[Any]:
        """The output of each run, side by side."""
        found = await self._threads.run_all(runs)
        taken = [seconds for _, seconds in found]
        # No thread was busy for longer on its own account, if the runs were spread evenly.
        self.seconds += max([*taken, sum(taken) / self._threads.size])
        return [output for output, _ in found]

    async def scores(self, sides: Sequence[Floats]) -> Doubles | None:
        """Probabilities (N, C), or relatedness (N, 1), from vectors (N, D) for each side.

        None if the model has no head for this number of sides.
        """
        card = self.model.card
        if card.kind == "embedding" or len(sides) != len(head_inputs(card)):
            return None
        logits, seconds = await self.model.logits(self._threads, *sides)
        self.seconds += seconds
        if card.kind == "relatedness":
            return expected_score(logits)[:, None]
        return probabilities(card, logits)


class Prediction:
    """The predicted label's score, or the relatedness, or the cosine to the full vector."""

    def __init__(
        self, run: ExplainRun, found: Sequence[ExplainOutputs], scores: Doubles | None
    ) -> None:
        """`scores` as in `ExplainResult`, and `found` the outputs they follow from."""
        self.run, self.found, self._scores = run, found, scores
        self._label = 0 if scores is None else int(scores[0].argmax())

    @property
    def measured(self) -> str:
        """The predicted label, "relatedness" or "cosine"."""
        if self._scores is None:
            return "cosine"
        labels = self.run.model.card.labels
        return labels[self._label] if labels else "relatedness"

    async def drops(self, side: int, vectors: Floats) -> Doubles:
        """(N,) how far the score falls when one of `vectors` (N, D) is that of the sentence `side`.

        Exactly 0 where that leaves the sentence's vector unchanged: ranks would show the order of rounding errors.
        """
        whole = 1.0 if self._scores is None else self._scores[0, self._label]
        own = self.found[side].embedding
        changed = np.abs(vectors - own).max(axis=1) > UNCHANGED * np.abs(own).max()
        drops: Doubles = np.where(changed, whole - await self.of(side, vectors), 0.0)
        return drops

    async def of(self, side: int, vectors: Floats) -> Doubles:
        """(N,) the score when one of `vectors` (N, D) is that of the sentence `side`."""
        sides = [np.repeat(one.embedding, len(vectors), axis=0) for one in self.found]
        sides[side] = vectors
        changed = None if self._scores is None else await self.run.scores(sides)
        if changed is None:
            size = self.run.model.card.dimension
            return cosines(self.found[side].embedding[0, :size], vectors[:, :size])
        scores: Doubles = changed[:, self._label]
        return scores


def cosine_matrix(first: Floats, second: Floats) -> Floats:
    """Cosines (N, M) of the rows of (N, D) and (M, D); 0 where a row is zero."""
    found: Floats = np.clip(normalise(first) @ normalise(second).T, -1.0, 1.0)  # rounding errors
    return found
