"""One request's explanation: what the model attends to, what its priors do, how far to trust it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from heedful.runtime.answers import expected_score, normalise, softmax
from heedful.runtime.errors import BadInput
from heedful.runtime.explain_graph import ExplainGraph, Explanation, Floats
from heedful.runtime.graphs import head_inputs
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.session import SessionThreads
from heedful.text.batch import Sentence, collate
from heedful.text.parse import Parse
from heedful.text.trees import drop

DRAWS = 20
"""Random choices of tokens that the most attended ones are compared with."""
SEED = 0

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """`priors` to switch off (False) or named as on, `k` tokens to delete for faithfulness."""

    priors: Mapping[str, bool] = field(default_factory=dict)
    alpha: float | None = None
    ablation: bool = False
    faithfulness: bool = False
    k: int = 1


@dataclass(frozen=True, slots=True)
class Ablation:
    """The answer without `prior`: its scores as in `Explained`, the cosine of its vector to the full one."""

    prior: str
    scores: Scores | None
    cosine: float


@dataclass(frozen=True, slots=True)
class Deletion:
    """Drops of the predicted label's score, or 1 - cosine of the vectors where there is no label."""

    attended: list[int]  # the k tokens, the most attended first
    drop: float  # without them
    random: float  # without k random ones, the mean over DRAWS
    spread: float  # and the standard deviation


@dataclass(frozen=True, slots=True)
class Explained:
    sentences: list[Explanation]  # of one sentence each
    priors: Mapping[str, bool]  # all that the model has
    alpha: float | None
    scores: Scores | None  # (C,) in the order of the card's labels; (1,) of a pair, from 1 to 5
    similarity: Floats | None  # (L, L') cosines of a pair's tokens
    ablation: list[Ablation] | None
    faithfulness: (
        list[Deletion | None] | None
    )  # of each sentence; None where k tokens are all of it
    seconds: float  # in sessions
    waited: float  # seconds


def explain_graph_of(model: LoadedModel) -> ExplainGraph:
    """Raises BadInput where the bundle has none."""
    if model.explain_graph is None:
        raise BadInput(
            f"{model.card.name} cannot be explained: its bundle has no explain.onnx; "
            "export it anew, or name another model",
            param="model",
            code="no_explanation",
        )
    return model.explain_graph


def check_priors(model: LoadedModel, asked: ExplainOptions) -> None:
    """Raise BadInput for a prior that the model does not have, or a model that says nothing."""
    known = [*explain_graph_of(model).priors, *(["alpha"] if model.card.alpha is not None else [])]
    named = [*asked.priors, *(["alpha"] if asked.alpha is not None else [])]
    for name in named:
        if name not in known:
            raise BadInput(
                f"priors.{name}: {model.card.name} has no such prior; "
                f"it has {', '.join(known) or 'none'}",
                param=f"priors.{name}",
                code="unknown_prior",
            )


def check_length(model: LoadedModel, parse: Parse, param: str) -> None:
    """Raise BadInput for a sentence whose maps would be too large."""
    most = explain_graph_of(model).max_tokens
    if len(parse) > most:
        raise BadInput(
            f"{param} has {len(parse)} tokens: {model.card.name} is explained up to {most}; "
            "send a shorter text, or set truncate to true",
            param=param,
            code="input_too_long",
        )


async def explain(
    model: LoadedModel, thread: SessionThreads, parses: Sequence[Parse], asked: ExplainOptions
) -> Explained:
    """Explain a sentence, or the two of a pair. Raises InferenceFailed."""
    asking = _ExplainRun(model, thread, asked)
    started = time.perf_counter()
    sentences = [model.sentence(parse) for parse in parses]
    found = [await asking.see([sentence]) for sentence in sentences]
    scores = await asking.scores([one.embedding for one in found])
    ablation = faithfulness = None
    if asked.ablation:
        ablation = [
            await _ablate(asking, sentences, found, prior)
            for prior, on in asking.priors.items()
            if on
        ]
    if asked.faithfulness:
        faithfulness = [await _delete(asking, parses, found, scores, i) for i in range(len(parses))]
    return Explained(
        sentences=found,
        priors=asking.priors,
        alpha=asking.alpha,
        scores=None if scores is None else scores[0],
        similarity=_similarity(found) if len(found) == 2 else None,
        ablation=ablation,
        faithfulness=faithfulness,
        seconds=asking.seconds,
        waited=max(time.perf_counter() - started - asking.seconds, 0.0),
    )


class _ExplainRun:
    """The model under the priors of one request."""

    def __init__(self, model: LoadedModel, thread: SessionThreads, asked: ExplainOptions) -> None:
        self.explain_graph = explain_graph_of(model)
        self.priors = {name: asked.priors.get(name, True) for name in self.explain_graph.priors}
        self.alpha = model.card.alpha if asked.alpha is None else asked.alpha
        self.k = asked.k
        self.seconds = 0.0
        self.model, self._thread = model, thread

    async def see(self, sentences: Sequence[Sentence], off: str | None = None) -> Explanation:
        """Sentences of one length, without the prior `off`."""
        switches = {name: on and name != off for name, on in self.priors.items()}
        feeds = self.explain_graph.feeds(collate(sentences), switches, self.alpha)
        found, seconds = await self._thread.run(self.explain_graph, feeds)
        self.seconds += seconds
        return found

    async def scores(self, sides: Sequence[Floats]) -> Scores | None:
        """(N, C) probabilities, or (N, 1) relatedness, of (N, D) vectors a side.

        None where the model says nothing of so many sides.
        """
        card = self.model.card
        if card.kind == "embedding" or len(sides) != len(head_inputs(card)):
            return None
        logits, seconds = await self.model.logits(self._thread, *sides)
        self.seconds += seconds
        return expected_score(logits)[:, None] if card.kind == "relatedness" else softmax(logits)


async def _ablate(
    asking: _ExplainRun, sentences: Sequence[Sentence], found: Sequence[Explanation], prior: str
) -> Ablation:
    vectors = [(await asking.see([sentence], off=prior)).embedding for sentence in sentences]
    cosines = [
        float(_cosine(one.embedding, vector)[0, 0])
        for one, vector in zip(found, vectors, strict=True)
    ]
    scores = await asking.scores(vectors)
    return Ablation(prior, None if scores is None else scores[0], float(np.mean(cosines)))


async def _delete(
    asking: _ExplainRun,
    parses: Sequence[Parse],
    found: Sequence[Explanation],
    scores: Scores | None,
    i: int,
) -> Deletion | None:
    """Take k tokens out of the sentence `i`, the other one whole."""
    length = len(parses[i])
    if length <= asking.k:
        return None
    shading = next(iter(found[i].pooling.values()))[0]
    attended = np.argsort(-shading, kind="stable")[: asking.k]
    rng = np.random.default_rng(SEED)
    choices = [attended, *(rng.choice(length, asking.k, replace=False) for _ in range(DRAWS))]
    shorter = await asking.see(
        [asking.model.sentence(drop(parses[i], gone.tolist())) for gone in choices]
    )
    sides = [np.repeat(one.embedding, len(choices), axis=0) for one in found]
    sides[i] = shorter.embedding
    changed = await asking.scores(sides)
    if scores is None or changed is None or not asking.model.card.labels:
        drops = 1.0 - _cosine(found[i].embedding, shorter.embedding)[0].astype(np.float64)
    else:
        label = int(scores[0].argmax())
        drops = scores[0, label] - changed[:, label]
    return Deletion(
        attended.tolist(), float(drops[0]), float(drops[1:].mean()), float(drops[1:].std())
    )


def _similarity(found: Sequence[Explanation]) -> Floats:
    first, second = (one.states[0] for one in found)
    return _cosine(first, second)


def _cosine(first: Floats, second: Floats) -> Floats:
    """Rows (N, D) and (M, D) -> (N, M); 0 where a row is zero."""
    cosines: Floats = normalise(first) @ normalise(second).T
    return cosines
