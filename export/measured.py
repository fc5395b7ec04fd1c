"""The dev split through a bundle's graphs: scores, temperature, and the distance from the model as trained."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heedful.export.bundle import TrainedModel
from heedful.export.bundle_writer import card_of
from heedful.export.dev_split import DevSplit, graph_vectors, torch_head, torch_vectors
from heedful.export.errors import ExportError
from heedful.export.golden import open_head
from heedful.runtime.answers import normalise
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, Card, ScoreCard, TrainedCard
from heedful.runtime.bundles.golden import outputs
from heedful.text.arrays import Doubles, Floats
from heedful.training.data import labels
from heedful.training.errors import ConfigError
from heedful.training.metrics import Score, fit_temperature

MAX_LOSS = 0.005
ROWS = 1_100
"""The dev score may fall by half a point, which on so many rows is a third of a standard error; on fewer by a third."""
MIN_COSINE = 0.999
"""Least cosine of an embedding's vector to the trained model's."""
COMPARED = 500
"""Examples, evenly spaced over dev, whose vectors and answers are compared, at most."""


def measured(
    bundle: Bundle, trained: TrainedModel, dev: DevSplit, least_cosine: float = MIN_COSINE
) -> Bundle:
    """The bundle with the measurements on dev in its card; its probabilities are calibrated there.

    Raises ExportError where the dev score falls by more than MAX_LOSS, or an embedding's vector is farther from the
    trained model's than `least_cosine`; ConfigError for a task of other labels.
    """
    served = ENCODER_INT8 if ENCODER_INT8 in bundle.files else ENCODER
    head, vectors = open_head(bundle), graph_vectors(bundle, served, dev.sentences)
    card = bundle.card
    if card.labels and trained.temperature is None:
        assert head is not None, "a model with labels has a head"
        card = card.model_copy(
            update={"temperature": _temperature(card, head(dev.sides(vectors)), dev)}
        )
    scores = dev.scores(card.labels, vectors, head)
    _check_score(card.name, trained.scores, scores[0])
    distance = _distance(bundle, card, served, trained, dev.part(COMPARED))
    if card.kind == "embedding" and not distance.cosine >= least_cosine:
        raise ExportError(
            f"{card.name}: the lowest cosine of a vector to the trained model's is {distance.cosine:.5f} on "
            f"{distance.sentences} sentences of dev (at least {least_cosine}); of encoder.onnx alone it is "
            f"{distance.cosine_float32:.5f}: take --storage normal, or --no-int8"
        )
    fields = card.fields() | {"trained": distance, "scores": _merged(trained.scores, scores)}
    if card.int8 is not None:
        before = _score_before(trained.scores, scores[0])
        fields["int8"] |= {
            "dataset": scores[0].dataset,
            "metric": scores[0].metric,
            "float32": scores[0].value if before is None else before,
            "int8": scores[0].value,
            "cosine": distance.cosine,
            "sentences": distance.sentences,
        }
    return replace(bundle, card=card_of(card.name, fields, bundle.files))


def _temperature(card: Card, logits: Floats, dev: DevSplit) -> float:
    if sorted(card.labels) != sorted(dev.task.labels):
        raise ConfigError(
            f"{card.name} has the labels {', '.join(card.labels)}, its task {', '.join(dev.task.labels)}"
        )
    order = [card.labels.index(label) for label in dev.task.labels]
    return fit_temperature(logits[:, order], labels(dev.examples))


def _score_before(known: Sequence[ScoreCard], score: Score) -> float | None:
    """The run's score on dev before the export; None if it has none."""
    values = {(score.dataset, score.split, score.metric): score.value for score in known}
    return values.get((score.dataset, score.split, score.metric))


def _check_score(name: str, known: Sequence[ScoreCard], score: Score) -> None:
    before = _score_before(known, score)
    most = MAX_LOSS * max(1.0, (ROWS / score.rows) ** 0.5)
    if before is not None and before - score.value > most:
        raise ExportError(
            f"{name}: its {score.metric} on {score.dataset} dev falls from {before:.4f}, the trained model's, to "
            f"{score.value:.4f} (by {most:.3g} at most)"
        )


def _merged(known: Sequence[ScoreCard], new: Sequence[Score]) -> list[ScoreCard]:
    """The known scores, in which new ones replace those of the same split and metric."""
    scores = [*known, *(ScoreCard.model_validate(score.as_dict()) for score in new)]
    return list({(score.dataset, score.split, score.metric): score for score in scores}.values())


def _distance(
    bundle: Bundle, card: Card, served: str, trained: TrainedModel, part: DevSplit
) -> TrainedCard:
    """How far the vectors and answers of the bundle's graphs are from the trained model's."""
    exact = torch_vectors(trained, part.sentences)
    vectors = graph_vectors(bundle, served, part.sentences)
    float32 = vectors if served == ENCODER else graph_vectors(bundle, ENCODER, part.sentences)
    answers = None
    if (head := open_head(bundle)) and (trained_head := torch_head(trained)):
        exported, original = (
            outputs(card, model_vectors, run(part.sides(model_vectors))).answers
            for model_vectors, run in ((vectors, head), (exact, trained_head))
        )
        answers = float(np.abs(exported - original).max())
    return TrainedCard(
        sentences=len(part.sentences),
        cosine=float(_cosines(vectors, exact, card.dimension).min()),
        cosine_float32=float(_cosines(float32, exact, card.dimension).min()),
        answers=answers,
    )


def _cosines(a: Floats, b: Floats, dimension: int) -> Doubles:
    """(N,) cosines of the sentences' vectors, without the values that only a head reads."""
    cosines: Doubles = (normalise(a[:, :dimension]) * normalise(b[:, :dimension])).sum(axis=1)
    return cosines
