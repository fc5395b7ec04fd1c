"""Signed evidence: the change of the answer when each token is left out, and integrated gradients."""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.runtime.correlation import Correlation, correlations
from heedful.runtime.explain_run import Prediction, Scores
from heedful.runtime.gradients import Gradients, gradients
from heedful.text.parse import Parse


@dataclass(frozen=True, slots=True)
class Evidence:
    weights: Scores  # (L,) the score with the whole sentence, minus that without the token
    correlations: list[Correlation]
    gradients: Gradients | None = None  # None unless asked for


async def evidence(
    prediction: Prediction, parses: Sequence[Parse], side: int, *, integrated: bool
) -> Evidence | None:
    """Leave out each token of sentence `side`, in batches that run side by side. None for a sentence of one token.

    `integrated` asks for integrated gradients too; raises BadInput where the bundle's graph has none.
    """
    parse = parses[side]
    if len(parse) == 1:
        return None
    sentence = prediction.run.model.sentence(parse)
    weights = await prediction.drops(side, [sentence.without([i]) for i in range(len(parse))])
    return Evidence(
        weights,
        correlations(prediction.found[side], weights),
        await gradients(prediction, side, sentence) if integrated else None,
    )
