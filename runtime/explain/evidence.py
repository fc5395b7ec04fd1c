"""Signed evidence: the change of the answer when each token is left out, and integrated gradients."""

from dataclasses import dataclass

from heedful.runtime.engine.work import Steps
from heedful.runtime.explain.correlation import Correlation, correlations
from heedful.runtime.explain.gradients import Gradients, gradients
from heedful.runtime.explain.run import Prediction
from heedful.text.arrays import Doubles, Floats
from heedful.text.batch import Sentence


@dataclass(frozen=True, slots=True)
class Evidence:
    weights: Doubles  # (L,) the score with the whole sentence, minus that without the token
    correlations: list[Correlation]
    gradients: Gradients | None = None  # None unless asked for


def evidence(
    prediction: Prediction, sentence: Sentence, side: int, shortened: Floats, *, integrated: bool
) -> Steps[Evidence | None]:
    """Evidence of the sentence `side`, of which `shortened` holds the vectors without each token. None for one token.

    `integrated` asks for integrated gradients too; raises BadInput where the bundle's graph has none.
    """
    if len(sentence) == 1:
        return None
    weights = yield from prediction.drops(side, shortened)
    integral = None
    if integrated:
        integral = yield from gradients(prediction, side, sentence)
    return Evidence(weights, correlations(prediction.found[side], weights), integral)
