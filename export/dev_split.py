"""A split of a task, read by the bundle's parser: vectors, answers and scores of torch models and of graphs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch

from heedful.export.bundle import TrainedModel
from heedful.runtime.answers import cosines, expected_score
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OVERHEAD, OrtSession
from heedful.text.arrays import Floats, Ints
from heedful.text.batch import Batch, Sentence, cheapest, collate
from heedful.text.parse import Parser
from heedful.training.data import class_numbers, labels
from heedful.training.metrics import METRICS, Numbers, Score
from heedful.training.tasks.base import Example, Task

BUDGET = 2048
"""Tokens of a batch at most, padding included."""
Encode = Callable[[Batch], Floats]
Head = Callable[[Sequence[Floats]], Floats]


@dataclass(frozen=True, slots=True)
class DevSplit:
    """Examples, their distinct sentences, and the numbers (N, sides) of each example's sentences."""

    task: Task
    examples: Sequence[Example]
    sentences: Sequence[Sentence]
    places: Ints

    @classmethod
    def read(
        cls, task: Task, examples: Sequence[Example], parser: Parser, trained: TrainedModel
    ) -> Self:
        """Parse the examples and look their words up, as the model reads them."""
        texts = list(dict.fromkeys(text for example in examples for text in example.texts))
        rows = {text: row for row, text in enumerate(texts)}
        places = np.array([[rows[text] for text in example.texts] for example in examples])
        return cls(task, examples, read_texts(texts, parser, trained), places)

    def part(self, most: int) -> Self:
        """At most so many examples, evenly spaced."""
        step = -(-len(self.examples) // most)
        rows, places = np.unique(self.places[::step], return_inverse=True)
        return replace(
            self,
            examples=self.examples[::step],
            sentences=[self.sentences[row] for row in rows],
            places=places.reshape(self.places[::step].shape),
        )

    def sides(self, vectors: Floats) -> list[Floats]:
        """Vectors of the sentences -> for each side the vectors (N, W) of the examples' texts."""
        return list(vectors[self.places.T])

    def scores(
        self, class_labels: Sequence[str], vectors: Floats, head: Head | None
    ) -> list[Score]:
        """Every metric of the task's kind on dev, the dev metric first."""
        answers, gold = self._answers(class_labels, vectors, head), labels(self.examples)
        return [
            Score(self.task.dev.name, "dev", name, metric(answers, gold), len(self.examples))
            for name, metric in METRICS[self.task.kind].items()
        ]

    def _answers(self, class_labels: Sequence[str], vectors: Floats, head: Head | None) -> Numbers:
        """(N,) the answers that the metrics of the task's kind compare with the labels."""
        sides = self.sides(vectors)
        if head is None:
            return np.array([cosines(a[None], b[None]).item() for a, b in zip(*sides, strict=True)])
        logits = head(sides)
        if self.task.kind == "relatedness":
            return expected_score(logits)
        answers: Numbers = class_numbers(class_labels, self.task.labels)[logits.argmax(axis=1)]
        return answers


def read_texts(texts: Sequence[str], parser: Parser, trained: TrainedModel) -> list[Sentence]:
    """Tokens and, where the model reads them, trees; each text is cut to the model's length."""
    tree = "heads" in trained.model.encoder.inputs
    parses = parser.parse(texts, trained.max_tokens, tree)
    cut = [parse.first(trained.vocab.fitting(parse.tokens)) for parse in parses]
    return [trained.vocab.sentence(parse.tokens, parse.heads) for parse in cut]


def graph_vectors(bundle: Bundle, file: str, sentences: Sequence[Sentence]) -> Floats:
    """(N, W) the vectors of an encoder's graph, with the values that only a head reads."""
    session = OrtSession(bundle.files[file], "cpu", 1, files={ENCODER: bundle.files[ENCODER]})
    return _encoded(sentences, lambda batch: session.run(encoder_feeds(bundle.card, batch)))


def torch_vectors(trained: TrainedModel, sentences: Sequence[Sentence]) -> Floats:
    """(N, W) the vectors of the trained model."""
    model = trained.model.eval()
    names = ("ids", "lengths", *model.inputs)

    def encode(batch: Batch) -> Floats:
        feeds = batch.feeds(names, trained.alpha)
        with torch.inference_mode():
            vectors = model(**{name: torch.as_tensor(feeds[name]) for name in feeds})
        return np.asarray(vectors)

    return _encoded(sentences, encode)


def torch_head(trained: TrainedModel) -> Head | None:
    """The trained head: vectors (N, W), one array a side -> logits (N, C). None for a model without one."""
    if trained.head is None:
        return None
    head = trained.head.eval()

    def run(sides: Sequence[Floats]) -> Floats:
        with torch.inference_mode():
            logits: Floats = head(*map(torch.from_numpy, map(np.ascontiguousarray, sides))).numpy()
        return logits

    return run


def _encoded(sentences: Sequence[Sentence], encode: Encode) -> Floats:
    groups = cheapest([len(sentence.ids) for sentence in sentences], BUDGET, OVERHEAD)
    parts = [(rows, encode(collate([sentences[row] for row in rows]))) for rows in groups]
    vectors = np.empty((len(sentences), parts[0][1].shape[1]), np.float32)
    for rows, part in parts:
        vectors[rows] = part
    return vectors
