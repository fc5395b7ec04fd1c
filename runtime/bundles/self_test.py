"""The self-test: the golden sentences of all models, on the live sessions and parser, and what has changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heedful.runtime.engine.work import Steps, parse
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.parse import ParseJob, Parser


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Results by model. A model without golden vectors has no deviation."""

    deviations: Mapping[str, float | None]  # largest change of a value of a vector of length 1
    moved: Mapping[str, list[str]]  # changes in words, of the models that have changed


def self_test(models: Iterable[LoadedModel], parser: Parser) -> Steps[SelfTest]:
    """Parse and encode the golden sentences again, without the cache. Raises InferenceFailed, Unavailable."""
    deviations: dict[str, float | None] = {}
    moved: dict[str, list[str]] = {}
    for model in models:
        deviations[model.card.name] = None
        if model.golden is None:
            continue
        limit, tree = model.card.max_tokens, model.card.tree
        jobs = [ParseJob(text, limit, tree) for text in model.golden.texts]
        parses = yield from parse(parser, jobs)
        parses = list(map(model.fit, parses))
        current = yield from model.golden_outputs()
        deviations[model.card.name] = model.golden.deviation(current, model.precision)
        changes = [
            *model.golden.moved_trees(parses, model.card),
            *model.golden.moved_outputs(current, model.precision),
        ]
        if changes:
            moved[model.card.name] = changes
    return SelfTest(deviations, moved)
