"""A request's explanation: attention, and changes of the answer without priors, tokens or their vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.runtime.answers import TokenizedText, chosen, cosines
from heedful.runtime.bundles.card import Card
from heedful.runtime.engine.work import Steps
from heedful.runtime.errors import BadInput
from heedful.runtime.explain.correlation import Correlation, correlations
from heedful.runtime.explain.curves import MAX_CURVE_TOKENS, SentenceCurves, curves
from heedful.runtime.explain.gradients import MAX_GRADIENT_TOKENS, Gradients, gradients
from heedful.runtime.explain.graph import ExplainOutputs
from heedful.runtime.explain.run import ExplainOptions, ExplainRun, Prediction, explain_graph_of
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.parsed import Parsed
from heedful.text.arrays import Doubles
from heedful.text.parse import Parse
from heedful.text.trees import to_conllu, to_displacy

DRAWS = 20
"""Random deletions with which the deletion of the most attended tokens is compared."""
SEED = 0


@dataclass(frozen=True, slots=True)
class Deletion:
    """Drops of the predicted label's score, or 1 - cosine of the vectors if there is no label."""

    attended: list[int]  # the k tokens, the most attended first
    drop: float  # without these tokens
    random: float  # without k random tokens, the mean over DRAWS
    spread: float  # the standard deviation of the latter


@dataclass(frozen=True, slots=True)
class Evidence:
    weights: Doubles  # (L,) the score with the whole sentence, minus that without the token
    margins: Doubles | None  # (L,) likewise, of the label's log-odds; None without labels
    correlations: list[Correlation]
    gradients: Gradients | None = None  # None unless requested


@dataclass(frozen=True, slots=True)
class ExplainResult:
    texts: list[TokenizedText]  # one, or the two of a pair
    sentences: Sequence[ExplainOutputs]  # of one sentence each
    priors: Mapping[str, bool | float]  # all priors of the model, and alpha
    # (1, C) in the order of the card's labels; (1, 1) from 1 to 5 for the relatedness of a pair.
    scores: Doubles | None
    fields: Mapping[str, Any]  # the others of the answer (docs/explain.md)

    def answer(self, model: str) -> dict[str, Any]:
        """The answer of POST /explain (docs/explain.md), with numpy arrays in place of lists."""
        return {
            "model": model,
            "priors": self.priors,
            "sentences": list(map(_sentence, self.texts, self.sentences)),
            **self.fields,  # orjson writes dataclasses
        }


def _sentence(text: TokenizedText, explanation: ExplainOutputs) -> dict[str, Any]:
    def weights(kind: str) -> list[dict[str, Any]]:
        return [
            {"name": name, "weights": np.ascontiguousarray(array[0])}
            for name, array in getattr(explanation, kind).items()
        ]

    return {
        "text": text.parse.text,
        "tokens": text.fields(),
        "tree": {"displacy": to_displacy(text.parse), "conllu": to_conllu(text.parse)},
        **{kind: weights(kind) for kind in ("maps", "gate", "pooling")},
    }


def check_priors(model: LoadedModel, options: ExplainOptions) -> None:
    """Raise BadInput for a prior that the model does not have, or a model without an explain graph."""
    known = [*explain_graph_of(model).priors, *(["alpha"] if model.card.alpha is not None else [])]
    requested = [*options.priors, *(["alpha"] if options.alpha is not None else [])]
    for name in requested:
        if name not in known:
            raise BadInput(
                f"priors.{name}: {model.card.name} has no such prior; "
                f"it has {', '.join(known) or 'none'}",
                param=f"priors.{name}",
                code="unknown_prior",
            )


def max_tokens(model: LoadedModel, options: ExplainOptions) -> int:
    """Length of the longest sentence that is explained with these options, in tokens."""
    limit = explain_graph_of(model).max_tokens
    if options.gradients:
        limit = min(limit, MAX_GRADIENT_TOKENS)
    return min(limit, MAX_CURVE_TOKENS) if options.curves else limit


def check_length(
    model: LoadedModel, parse: Parse, path: str, options: ExplainOptions, remedy: str
) -> None:
    """Raise BadInput for a sentence whose maps would be too large, or its curves too slow."""
    limit = max_tokens(model, options)
    if len(parse) > limit:
        raise BadInput(
            f"{path} has {len(parse)} tokens: {model.card.name} is explained up to {limit}"
            f"{' with curves' if options.curves else ' with gradients' if options.gradients else ''}; "
            f"send a shorter text, or {remedy}",
            param=path,
            code="input_too_long",
        )


def explain(parsed: Parsed, options: ExplainOptions) -> Steps[ExplainResult]:
    """Explain a sentence or the two of a pair.

    Raises InferenceFailed, and BadInput for gradients that the bundle's graph cannot give.
    """
    model = parsed.model
    run = ExplainRun(model, options)
    prediction = yield from run.predict(parsed)
    outputs, scores = prediction.outputs, prediction.scores
    fields = _answer_fields(scores, model.card)
    if len(outputs) == 2:
        similarity = cosines(*(output.states[0] for output in outputs))
        fields["similarity"] = similarity.astype(np.float32)
    if options.ablation:
        fields["ablation"] = []
        for prior in [prior for prior, on in run.priors.items() if on]:
            fields["ablation"].append((yield from _ablate(prediction, parsed, prior)))
    deletions: list[Deletion | None] = []
    evidence: list[Evidence | None] = []
    sentence_curves: list[SentenceCurves | None] = []
    for side, parse in enumerate(parsed.parses):
        if options.faithfulness:
            deletions.append((yield from _delete(prediction, side)))
        if options.evidence or options.gradients or options.curves:
            of_side = yield from _evidence(prediction, side, options.gradients)
            evidence.append(of_side)
            sentence_curves.append(None)
            if options.curves and of_side is not None:
                sentence_curves[side] = yield from curves(prediction, parse, side, of_side.weights)
    if options.faithfulness:
        fields["faithfulness"] = {"k": run.k, "draws": DRAWS, "sentences": deletions}
    if options.evidence or options.gradients:
        fields["evidence"] = {"of": prediction.measured, "sentences": evidence}
    if options.curves:
        fields["curves"] = {"of": prediction.measured, "sentences": sentence_curves}
    return ExplainResult(
        texts=parsed.tokenized(),
        sentences=outputs,
        priors=run.priors if run.alpha is None else {**run.priors, "alpha": run.alpha},
        scores=scores,
        fields=fields,
    )


def _answer_fields(scores: Doubles | None, card: Card) -> dict[str, Any]:
    """The model's answer (1, C), if it has one: a label and the labels' scores, or the relatedness of a pair."""
    if scores is None:
        return {}
    if not card.labels:
        return {"relatedness": scores.item()}
    (label,) = chosen(card, scores)  # None where the model abstains
    by_label = dict(zip(card.labels, scores[0].tolist(), strict=True))
    return {"prediction": {"label": label, "scores": by_label}}


def _ablate(prediction: Prediction, parsed: Parsed, prior: str) -> Steps[dict[str, Any]]:
    """The answer without `prior`, how it differs, and the cosine of its vector to the full vector."""
    run, card = prediction.run, prediction.run.model.card
    without = yield from run.predict(parsed, off=prior)
    by_sentence = [
        cosines(*(output.embedding[:, : card.dimension] for output in both))
        for both in zip(prediction.outputs, without.outputs, strict=True)
    ]
    fields = {"prior": prior, "cosine": float(np.mean(by_sentence))}
    before, after = prediction.scores, without.scores
    if before is None or after is None:
        return fields
    names, change = card.labels or ("relatedness",), after[0] - before[0]
    fields |= _answer_fields(after, card)
    fields["change"] = dict(zip(names, change.tolist(), strict=True))
    if card.labels:
        fields["flips"] = chosen(card, after) != chosen(card, before)
    return fields


def _delete(prediction: Prediction, side: int) -> Steps[Deletion | None]:
    """Delete k tokens from the sentence `side`, and none from the other."""
    run, length = prediction.run, len(prediction.parsed.sentences[side])
    if length <= run.k:
        return None
    attended = np.argsort(-prediction.attention(side), kind="stable")[: run.k]
    rng = np.random.default_rng(SEED)
    choices = [attended, *(rng.choice(length, run.k, replace=False) for _ in range(DRAWS))]
    # A deletion may raise or lower a relatedness: 1 - cosine counts there, as without a head.
    by_cosine = not run.model.card.labels
    drops, _ = yield from prediction.drops_without(side, choices, by_cosine=by_cosine)
    return Deletion(
        attended.tolist(), float(drops[0]), float(drops[1:].mean()), float(drops[1:].std())
    )


def _evidence(prediction: Prediction, side: int, with_gradients: bool) -> Steps[Evidence | None]:
    """The evidence of the sentence `side`; None for a sentence of one token."""
    sentence = prediction.parsed.sentences[side]
    if len(sentence) == 1:
        return None
    weights, margins = yield from prediction.drops_without(
        side, [[i] for i in range(len(sentence))]
    )
    integrated = (yield from gradients(prediction, side, sentence)) if with_gradients else None
    return Evidence(weights, margins, correlations(prediction.outputs[side], weights), integrated)
