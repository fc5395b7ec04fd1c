"""Dev scores of a bundle in float32 with a part of it replaced: its attention, its trees, a prior."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.export.golden import open_head
from heedful.runtime.answers import cosines, expected_score
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER, EXPLAIN
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.runtime.explain.graph import ExplainGraph
from heedful.text.arrays import Floats, Ints
from heedful.text.batch import Batch, Sentence, collate
from heedful.text.parse import Parser
from heedful.training.data import class_numbers, labels
from heedful.training.metrics import dev_metric
from heedful.training.tasks.base import Example, Task
from tools.attention_controls import Control, controlled
from tools.batches import plan

Encode = Callable[[Batch], Floats]

BUDGET = 2048
"""Tokens of a batch, padding included."""
SEED = 0
ATTENTION: tuple[Control, ...] = ("uniform", "permuted", "random")


class ControlScores:
    """The examples of a split, read once by the bundle's parser."""

    def __init__(
        self, bundle: Bundle, parser: Parser, task: Task, examples: Sequence[Example]
    ) -> None:
        self._bundle, self._task, self._examples = bundle, task, examples
        self._head = open_head(bundle)
        texts = list(dict.fromkeys(text for example in examples for text in example.texts))
        card = bundle.card
        parses = parser.parse(texts, card.max_tokens, card.tree)
        cut = [parse.first(bundle.vocab.fitting(parse.tokens)) for parse in parses]
        self._sentences = [bundle.vocab.sentence(parse.tokens, parse.heads) for parse in cut]
        self._rows = {text: i for i, text in enumerate(texts)}

    def scores(self) -> Iterator[tuple[str, float]]:
        """The name of each control and its dev score, the unchanged model first."""
        yield "as trained", self._score(self._graph(self._bundle.files[ENCODER]))
        for control in ATTENTION:
            graph = controlled(self._bundle.files[ENCODER], control)
            yield f"{control} attention", self._score(self._graph(graph))
        if self._bundle.card.tree:
            rng = np.random.default_rng(SEED)
            plain = self._graph(self._bundle.files[ENCODER])
            yield "random trees", self._score(plain, lambda length: random_tree(rng, length))
            yield "right-branching trees", self._score(plain, right_branching)
        if EXPLAIN in self._bundle.files:
            explain = ExplainGraph(self._bundle.files, self._bundle.card)
            for prior in explain.priors:
                yield f"without {prior}", self._score(_without(explain, prior))

    def _graph(self, content: bytes) -> Encode:
        session = OrtSession(content, "cpu", 1)
        return lambda batch: session.run(encoder_feeds(self._bundle.card, batch))

    def _score(self, encode: Encode, tree: Callable[[int], Ints] | None = None) -> float:
        sentences = self._sentences
        if tree:
            sentences = [replace(each, heads=tree(len(each))) for each in sentences]
        vectors = _vectors(sentences, encode, self._bundle.card.width)
        _, metric = dev_metric(self._task.kind)
        return metric(self._answers(vectors), labels(self._examples))

    def _answers(self, vectors: Floats) -> npt.NDArray[Any]:
        """(N,) the answers, like those of `tools.scoring.Predictor`."""
        sides = [
            vectors[[self._rows[example.texts[side]] for example in self._examples]]
            for side in range(len(self._examples[0].texts))
        ]
        if self._head is None:
            pairs = zip(*sides, strict=True)
            return np.array([cosines(a[None], b[None]).item() for a, b in pairs])
        logits = self._head(sides)
        if self._task.kind == "relatedness":
            return expected_score(logits)
        classes = class_numbers(self._bundle.card.labels, self._task.labels)
        answers: npt.NDArray[Any] = classes[logits.argmax(axis=1)]
        return answers


def _without(graph: ExplainGraph, prior: str) -> Encode:
    switches: Mapping[str, bool] = {prior: False}
    return lambda batch: graph.vectors(graph.feeds(batch, switches))


def _vectors(sentences: Sequence[Sentence], encode: Encode, width: int) -> Floats:
    vectors = np.empty((len(sentences), width), np.float32)
    for rows in plan([len(sentence.ids) for sentence in sentences], BUDGET):
        vectors[rows] = encode(collate([sentences[row] for row in rows]))
    return vectors


def right_branching(length: int) -> Ints:
    """Each token governs the next one."""
    return np.maximum(np.arange(length) - 1, 0)


def random_tree(rng: np.random.Generator, length: int) -> Ints:
    """Tokens in random order, each attached to a random earlier one."""
    order = rng.permutation(length)
    heads = order.copy()
    for place in range(1, length):
        heads[order[place]] = order[rng.integers(place)]
    heads[order[0]] = order[0]
    return heads
