"""What a bundle's graphs do on the dev split, compared with the model as trained: scores, temperature, distance."""

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
"""The dev score may fall by half a point, a third of a standard error on so many rows; on fewer rows by that."""
MIN_COSINE = 0.999
"""Between an embedding's vector and the trained model's."""
COMPARED = 500
"""Examples whose vectors and answers are compared, at most, spread evenly over dev."""


def measured(
    made: Bundle, trained: TrainedModel, dev: DevSplit, least_cosine: float = MIN_COSINE
) -> Bundle:
    """The bundle with a card that says what its graphs do on dev; probabilities are calibrated there.

    Raises ExportError where the dev score falls by more than MAX_LOSS, or an embedding's vector is farther from the
    trained model's than `least_cosine`; ConfigError for a task of other labels.
    """
    served = ENCODER_INT8 if ENCODER_INT8 in made.files else ENCODER
    head, vectors = open_head(made), graph_vectors(made, served, dev.sentences)
    card = made.card
    if card.labels and trained.temperature is None:
        assert head is not None, "a model with labels has a head"
        card = card.model_copy(
            update={"temperature": _temperature(card, head(dev.sides(vectors)), dev)}
        )
    scores = dev.scores(card.labels, vectors, head)
    _check_score(card.name, trained.scores, scores[0])
    distance = _distance(made, card, served, trained, dev.part(COMPARED))
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
    return replace(made, card=card_of(card.name, fields, made.files))


def _temperature(card: Card, logits: Floats, dev: DevSplit) -> float:
    if sorted(card.labels) != sorted(dev.task.labels):
        raise ConfigError(
            f"{card.name} has the labels {', '.join(card.labels)}, its task {', '.join(dev.task.labels)}"
        )
    order = [card.labels.index(label) for label in dev.task.labels]
    return fit_temperature(logits[:, order], labels(dev.examples))


def _score_before(known: Sequence[ScoreCard], found: Score) -> float | None:
    """The run's own score of dev."""
    same = (found.dataset, found.split, found.metric)
    return next((one.value for one in known if (one.dataset, one.split, one.metric) == same), None)


def _check_score(name: str, known: Sequence[ScoreCard], found: Score) -> None:
    before = _score_before(known, found)
    most = MAX_LOSS * max(1.0, (ROWS / found.rows) ** 0.5)
    if before is not None and before - found.value > most:
        raise ExportError(
            f"{name}: its {found.metric} on {found.dataset} dev falls from {before:.4f}, the trained model's, to "
            f"{found.value:.4f} (by {most:.3g} at most)"
        )


def _merged(known: Sequence[ScoreCard], found: Sequence[Score]) -> list[ScoreCard]:
    """The known scores, with those that were measured in place of those of the same split and metric."""
    every = [*known, *(ScoreCard.model_validate(one.as_dict()) for one in found)]
    return list({(one.dataset, one.split, one.metric): one for one in every}.values())


def _distance(
    made: Bundle, card: Card, served: str, trained: TrainedModel, part: DevSplit
) -> TrainedCard:
    exact = torch_vectors(trained, part.sentences)
    found = graph_vectors(made, served, part.sentences)
    plain = found if served == ENCODER else graph_vectors(made, ENCODER, part.sentences)
    answers = None
    if (head := open_head(made)) and (trained_head := torch_head(trained)):
        stored, before = (
            outputs(card, vectors, run(part.sides(vectors))).answers
            for vectors, run in ((found, head), (exact, trained_head))
        )
        answers = float(np.abs(stored - before).max())
    return TrainedCard(
        sentences=len(part.sentences),
        cosine=float(_cosines(found, exact, card.dimension).min()),
        cosine_float32=float(_cosines(plain, exact, card.dimension).min()),
        answers=answers,
    )


def _cosines(a: Floats, b: Floats, dimension: int) -> Doubles:
    """(N,) of the sentences' vectors, without what only a head reads."""
    found: Doubles = (normalise(a[:, :dimension]) * normalise(b[:, :dimension])).sum(axis=1)
    return found
