"""A request's runs of an explain graph: vectors, scores, and the score that evidence is measured on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from heedful.runtime.answers import TINY, cosines, head_scores
from heedful.runtime.bundles.card import EXPLAIN, IMPORTED
from heedful.runtime.engine.graphs import Feeds
from heedful.runtime.engine.session import FunctionRunner
from heedful.runtime.engine.work import Steps, Work
from heedful.runtime.errors import BadInput
from heedful.runtime.explain.graph import SCALE, ExplainGraph, ExplainOutputs
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.parsed import Parsed
from heedful.text.arrays import Doubles, Floats, Ints
from heedful.text.batch import Runner, Sentence, collate
from heedful.text.graph import CPU
from heedful.text.kinds import HEAD_INPUTS
from heedful.text.parse import Parse

T = TypeVar("T")

BUDGET, OVERHEAD = 320, 16
"""Tokens of a batch of vectors, padding included, at most; and the fixed cost of a batch in tokens."""
MAX_ALPHA = 100.0
"""Limit of alpha, the weight of the distances."""
UNCHANGED = 1e-5
"""A sentence's vector counts as unchanged if no value changes by more than this share of the largest value: a sum over
fewer tokens, or in another batch, rounds differently."""


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """`priors` to switch off (False) or leave on, `k` tokens to delete for faithfulness.

    Raises BadInput for a value that is wrong for all models; `check_priors` checks the priors of a model.
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
            raise BadInput(f"alpha is {self.alpha}: give 0 to {MAX_ALPHA:g}", param="alpha")
        if self.k < 1:
            raise BadInput(f"k is {self.k}: give at least 1", param="k")


def explain_graph_of(model: LoadedModel) -> ExplainGraph:
    """The model's explain graph. Raises BadInput where the bundle has none."""
    if model.explain_graph is None:
        why = (
            "an imported encoder has no explanation"
            if model.card.encoder.name == IMPORTED
            else f"its bundle has no {EXPLAIN}"
        )
        raise BadInput(
            f"{model.card.name} cannot be explained: {why}. Name a model that has one: every bundle that "
            f"`heedful train`, `tune` or `distill` made, the shipped ones too ({EXPLAIN} in the card's `files`)",
            param="model",
            code="no_explanation",
        )
    return model.explain_graph


class ExplainRun:
    """A model with a request's priors."""

    def __init__(self, model: LoadedModel, options: ExplainOptions) -> None:
        self.explain_graph = explain_graph_of(model)
        self.priors = {name: options.priors.get(name, True) for name in self.explain_graph.priors}
        self.alpha = model.card.alpha if options.alpha is None else options.alpha
        self.k = options.k
        self.model = model
        as_served = all(self.priors.values()) and self.alpha == model.card.alpha
        self._vectors: Runner[Floats]
        if as_served and model.encoder.session.provider == CPU:  # the same weights, but faster
            self._vectors = model.encoder
        else:
            self._vectors = FunctionRunner(
                lambda sentences: list(
                    self.explain_graph.vectors(self._feeds(sentences, self.priors))
                ),
                BUDGET,
                OVERHEAD,
                lambda sentences: [len(sentence.ids) for sentence in sentences],
            )

    def encode(
        self, sentences: Sequence[Sentence], off: str | None = None
    ) -> Steps[list[ExplainOutputs]]:
        """The graph's outputs for each sentence, without the prior `off`."""
        switches = {name: on and name != off for name, on in self.priors.items()}

        def outputs(batch: Sequence[Sentence]) -> list[ExplainOutputs]:
            return [self.explain_graph.run(self._feeds([sentence], switches)) for sentence in batch]

        return (yield from self._run(FunctionRunner(outputs, budget=1, overhead=0), sentences))

    def predict(self, parsed: Parsed, off: str | None = None) -> Steps["Prediction"]:
        """The answer for a text or a pair, without the prior `off`."""
        parses, count = parsed.parses, len(parsed.sentences)
        nearest = (yield from self.model.nearest(parses)) if count == 2 else {}
        encoded = yield from self.encode([*parsed.sentences, *nearest.values()], off)
        vectors = [outputs.embedding for outputs in encoded]
        of_nearest = {row: vector[0] for row, vector in zip(nearest, vectors[count:], strict=True)}
        scores = yield from self.scores(parses, vectors[:count], of_nearest)
        return Prediction(self, parsed, encoded[:count], of_nearest, scores)

    def vectors(self, sentences: Sequence[Sentence]) -> Steps[Floats]:
        """Vectors (N, D) of sentences of any lengths."""
        rows = yield from self._run(self._vectors, sentences)
        return np.array(rows, np.float32).reshape(len(rows), self.model.card.width)

    def scaled(self, sentence: Sentence, scales: Floats) -> Steps[Floats]:
        """Vectors (N, D) in float32 of a sentence whose word vectors are scaled by each row of `scales` (N, L)."""

        def vectors(rows: Sequence[Floats]) -> list[Floats]:
            feeds = self._feeds([sentence] * len(rows), self.priors) | {SCALE: np.array(rows)}
            return list(self.model.gradient_graph.vectors(feeds))

        runner = FunctionRunner(vectors, BUDGET, OVERHEAD, lambda rows: [len(row) for row in rows])
        return np.array((yield from self._run(runner, list(scales))))

    def scores(
        self, parses: Sequence[Parse], sides: Sequence[Floats], nearest: Mapping[int, Floats]
    ) -> Steps[Doubles | None]:
        """Probabilities (N, C), or relatedness (N, 1), of the texts or pairs of `LoadedModel.answer`.

        None if the model has no head for this number of sides.
        """
        card = self.model.card
        if len(sides) != len(HEAD_INPUTS[card.kind]):
            return None
        return head_scores(card, (yield from self.model.answer(parses, sides, nearest)))

    def _feeds(self, sentences: Sequence[Sentence], priors: Mapping[str, bool]) -> Feeds:
        return self.explain_graph.feeds(collate(sentences), priors, self.alpha)

    def _run(self, runner: Runner[T], items: Sequence[Any]) -> Steps[list[T]]:
        work = Work(runner, items)
        yield work
        return work.outputs


class Prediction:
    """The score of an answer: that of the predicted label, the relatedness, or the cosine to the full vector."""

    def __init__(
        self,
        run: ExplainRun,
        parsed: Parsed,
        outputs: Sequence[ExplainOutputs],
        nearest: Mapping[int, Floats],
        scores: Doubles | None,
    ) -> None:
        """`scores` (1, C) are those of `ExplainRun.scores` for the others."""
        self.run, self.parsed, self.outputs, self.scores = run, parsed, outputs, scores
        self._nearest = nearest
        self._label = 0 if scores is None else int(scores[0].argmax())

    @property
    def measured(self) -> str:
        """The predicted label, "relatedness" or "cosine"."""
        if self.scores is None:
            return "cosine"
        labels = self.run.model.card.labels
        return labels[self._label] if labels else "relatedness"

    def attention(self, side: int) -> Floats:
        """(L,) the weights of the first pooling of the sentence `side`."""
        weights: Floats = next(iter(self.outputs[side].pooling.values()))[0]
        return weights

    def drops_without(
        self, side: int, removed: Collection[Sequence[int] | Ints], *, by_cosine: bool = False
    ) -> Steps[tuple[Doubles, Doubles | None]]:
        """As `drops`, without each of the sets of tokens from the sentence `side`."""
        sentence, parse = self.parsed.sentences[side], self.parsed.parses[side]
        vectors = yield from self.run.vectors([sentence.without(tokens) for tokens in removed])
        parses = [parse.without(tokens) for tokens in removed]
        return (yield from self.drops(side, vectors, parses, by_cosine=by_cosine))

    def drops(
        self,
        side: int,
        vectors: Floats,
        parses: Sequence[Parse] | None = None,
        *,
        by_cosine: bool = False,
    ) -> Steps[tuple[Doubles, Doubles | None]]:
        """(N,) how far the score falls when each of `vectors` (N, D) replaces that of the sentence `side`.

        `parses` (N,) are of the vectors' texts, where they have other words than the sentence.
        And likewise the label's log-odds, which still differ where the probability rounds to 1; None without labels.
        Exactly 0 for a vector that is unchanged but for rounding: ranks would show the order of rounding errors.
        """
        card, vector = self.run.model.card, self.outputs[side].embedding
        changed = np.abs(vectors - vector).max(axis=1) > UNCHANGED * np.abs(vector).max()
        if by_cosine or self.scores is None:
            return np.where(changed, 1.0 - self._cosines(side, vectors), 0.0), None
        scores = np.vstack([self.scores, (yield from self._label_scores(side, vectors, parses))])
        measured = scores[:, self._label]
        drops = np.where(changed, measured[0] - measured[1:], 0.0)
        if not card.labels:
            return drops, None
        odds = log_odds(scores, self._label, multi_label=card.multi_label)
        return drops, np.where(changed, odds[0] - odds[1:], 0.0)

    def scores_with(self, side: int, vectors: Floats) -> Steps[Doubles]:
        """(N,) the score, or the cosine, when each of `vectors` (N, D) replaces that of the sentence `side`."""
        if self.scores is None:
            return self._cosines(side, vectors)
        scores: Doubles = (yield from self._label_scores(side, vectors))[:, self._label]
        return scores

    def _cosines(self, side: int, vectors: Floats) -> Doubles:
        size = self.run.model.card.dimension
        return cosines(self.outputs[side].embedding[:, :size], vectors[:, :size]).ravel()

    def _label_scores(
        self, side: int, vectors: Floats, parses: Sequence[Parse] | None = None
    ) -> Steps[Doubles]:
        """(N, C) the scores of all labels with each of `vectors`."""
        count = len(vectors)
        sides = [np.repeat(output.embedding, count, axis=0) for output in self.outputs]
        sides[side] = vectors
        texts = [*self.parsed.parses] * count
        nearest = {row: vector for vector in self._nearest.values() for row in range(count)}
        if parses is not None:
            texts[side :: len(sides)] = parses
            sentences = yield from self.run.model.nearest(texts)
            of_nearest = yield from self.run.vectors(list(sentences.values()))
            nearest = dict(zip(sentences, of_nearest, strict=True))
        scores = yield from self.run.scores(texts, sides, nearest)
        assert scores is not None, "the full sentences have scores"
        return scores


def log_odds(scores: Doubles, label: int, *, multi_label: bool) -> Doubles:
    """(N,) ln of a label's probability over that of its complement, from the probabilities (N, C) of all labels."""
    others = 1 - scores[:, label] if multi_label else np.delete(scores, label, 1).sum(axis=1)
    odds: Doubles = np.log(np.maximum(scores[:, label], TINY)) - np.log(np.maximum(others, TINY))
    return odds
