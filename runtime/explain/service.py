"""One request's explanation: attention, ablated priors, and faithfulness."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.runtime.answers import cosines
from heedful.runtime.bundles.card import Card
from heedful.runtime.engine.work import Steps
from heedful.runtime.errors import BadInput
from heedful.runtime.explain.curves import MAX_CURVE_TOKENS, SentenceCurves, curves
from heedful.runtime.explain.evidence import Evidence, evidence
from heedful.runtime.explain.gradients import MAX_GRADIENT_TOKENS
from heedful.runtime.explain.graph import ExplainOutputs
from heedful.runtime.explain.run import (
    ExplainOptions,
    ExplainRun,
    Prediction,
    cosine_matrix,
    explain_graph_of,
)
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.arrays import Doubles, Floats
from heedful.text.batch import Sentence
from heedful.text.parse import Parse

DRAWS = 20
"""Random deletions that the deletion of the most attended tokens is compared with."""
SEED = 0


@dataclass(frozen=True, slots=True)
class Ablation:
    """The answer without `prior`: scores as in `ExplainResult`, and the cosine of its vector to the full one."""

    prior: str
    scores: Doubles | None
    cosine: float


@dataclass(frozen=True, slots=True)
class Deletion:
    """Drops of the predicted label's score, or 1 - cosine of the vectors if there is no label."""

    attended: list[int]  # the k tokens, the most attended first
    drop: float  # without them
    random: float  # without k random ones, the mean over DRAWS
    spread: float  # and the standard deviation


@dataclass(frozen=True, slots=True)
class ExplainResult:
    sentences: list[ExplainOutputs]  # one sentence each
    priors: Mapping[str, bool]  # every prior of the model
    alpha: float | None
    # (C,) in the order of the card's labels; (1,) from 1 to 5 for a related pair.
    scores: Doubles | None
    similarity: Floats | None  # (L, L') cosines of a pair's tokens
    ablation: list[Ablation] | None
    faithfulness: list[Deletion | None] | None  # None for a sentence of k tokens or fewer
    measured: str  # what evidence and curves are measured on: a label, "relatedness" or "cosine"
    evidence: list[Evidence | None] | None  # None for a sentence of one token
    curves: list[SentenceCurves | None] | None  # None for a sentence of one token
    seconds: float  # in sessions
    waited: float  # seconds

    def probabilities(self, card: Card) -> Doubles | None:
        """(1, C) of the labels; None for a model that answers none."""
        return None if self.scores is None or not card.labels else self.scores[None]


def check_priors(model: LoadedModel, options: ExplainOptions) -> None:
    """Raise BadInput for a prior that the model does not have, or a model without an explain graph."""
    known = [*explain_graph_of(model).priors, *(["alpha"] if model.card.alpha is not None else [])]
    named = [*options.priors, *(["alpha"] if options.alpha is not None else [])]
    for name in named:
        if name not in known:
            raise BadInput(
                f"priors.{name}: {model.card.name} has no such prior; "
                f"it has {', '.join(known) or 'none'}",
                param=f"priors.{name}",
                code="unknown_prior",
            )


def max_tokens(model: LoadedModel, options: ExplainOptions) -> int:
    """Longest sentence that is explained with these options, in tokens."""
    limit = explain_graph_of(model).max_tokens
    if options.gradients:
        limit = min(limit, MAX_GRADIENT_TOKENS)
    return min(limit, MAX_CURVE_TOKENS) if options.curves else limit


def check_length(model: LoadedModel, parse: Parse, path: str, options: ExplainOptions) -> None:
    """Raise BadInput for a sentence whose maps would be too large, or its curves too slow."""
    limit = max_tokens(model, options)
    if len(parse) > limit:
        raise BadInput(
            f"{path} has {len(parse)} tokens: {model.card.name} is explained up to {limit}"
            f"{' with curves' if options.curves else ' with gradients' if options.gradients else ''}; "
            "send a shorter text, or set truncate to true",
            param=path,
            code="input_too_long",
        )


def explain(
    model: LoadedModel, parses: Sequence[Parse], options: ExplainOptions
) -> Steps[ExplainResult]:
    """Explain a sentence or the two of a pair. Raises InferenceFailed."""
    run = ExplainRun(model, options)
    started = time.perf_counter()
    sentences = [model.sentence(parse) for parse in parses]
    wants_evidence = options.evidence or options.gradients or options.curves
    found = yield from run.encode(sentences)
    scores = yield from run.scores([one.embedding for one in found])
    prediction = Prediction(run, found, scores)
    ablation: list[Ablation] = []
    for prior, on in run.priors.items():
        if options.ablation and on:
            ablation.append((yield from _ablate(run, sentences, found, prior)))
    deletions: list[Deletion | None] = []
    for i in range(len(parses) if options.faithfulness else 0):
        deletions.append((yield from _delete(run, parses, found, scores, i)))
    signed: list[Evidence | None] = []
    curved: list[SentenceCurves | None] = []
    for i, sentence in enumerate(sentences if wants_evidence else ()):
        shortened = yield from run.shortened(sentence)
        integrated = options.gradients
        of_side = yield from evidence(prediction, sentence, i, shortened, integrated=integrated)
        signed.append(of_side)
        if options.curves:
            curve = None
            if of_side is not None:
                curve = yield from curves(prediction, parses, i, of_side.weights)
            curved.append(curve)
    return ExplainResult(
        sentences=found,
        priors=run.priors,
        alpha=run.alpha,
        scores=None if scores is None else scores[0],
        similarity=_similarity(found) if len(found) == 2 else None,
        ablation=ablation if options.ablation else None,
        faithfulness=deletions if options.faithfulness else None,
        measured=prediction.measured,
        evidence=signed if options.evidence or options.gradients else None,
        curves=curved if options.curves else None,
        seconds=run.seconds,
        waited=max(time.perf_counter() - started - run.seconds, 0.0),
    )


def _ablate(
    run: ExplainRun, sentences: Sequence[Sentence], found: Sequence[ExplainOutputs], prior: str
) -> Steps[Ablation]:
    without = yield from run.encode(sentences, off=prior)
    vectors = [one.embedding for one in without]
    size = run.model.card.dimension
    alike = [
        cosines(one.embedding[0, :size], vector[:, :size])
        for one, vector in zip(found, vectors, strict=True)
    ]
    scores = yield from run.scores(vectors)
    return Ablation(prior, None if scores is None else scores[0], float(np.mean(alike)))


def _delete(
    run: ExplainRun,
    parses: Sequence[Parse],
    found: Sequence[ExplainOutputs],
    scores: Doubles | None,
    i: int,
) -> Steps[Deletion | None]:
    """Delete k tokens from sentence `i` and leave the other one whole."""
    length = len(parses[i])
    if length <= run.k:
        return None
    shading = next(iter(found[i].pooling.values()))[0]
    attended = np.argsort(-shading, kind="stable")[: run.k]
    rng = np.random.default_rng(SEED)
    choices = [attended, *(rng.choice(length, run.k, replace=False) for _ in range(DRAWS))]
    sentence = run.model.sentence(parses[i])
    shorter = yield from run.vectors([sentence.without(gone.tolist()) for gone in choices])
    # A deletion may raise a relatedness as well as lower it: there too 1 - cosine counts, as without a head.
    prediction = Prediction(run, found, scores if run.model.card.labels else None)
    drops = yield from prediction.drops(i, shorter)
    return Deletion(
        attended.tolist(), float(drops[0]), float(drops[1:].mean()), float(drops[1:].std())
    )


def _similarity(found: Sequence[ExplainOutputs]) -> Floats:
    first, second = (one.states[0] for one in found)
    return cosine_matrix(first, second)
