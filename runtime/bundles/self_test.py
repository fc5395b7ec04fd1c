"""Run the golden sentences of all models on the live sessions and parser, and name what moved."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heedful.runtime.engine.work import Steps, parse
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.parse import ParseJob, Parser


@dataclass(frozen=True, slots=True)
class SelfTest:
    """By model. A model without golden vectors has no deviation, and nothing that could move."""

    deviations: Mapping[str, float | None]  # largest change of a value of a vector of length 1
    moved: Mapping[str, list[str]]  # only models of which something moved, in words


def self_test(models: Iterable[LoadedModel], parser: Parser) -> Steps[SelfTest]:
    """Parse and encode them again, past the cache. Raises InferenceFailed, Unavailable."""
    deviations: dict[str, float | None] = {}
    moved: dict[str, list[str]] = {}
    for model in models:
        deviations[model.card.name] = None
        if model.golden is None:
            continue
        limit, tree = model.card.max_tokens, model.card.tree
        jobs = [ParseJob(text, limit, tree) for text in model.golden.texts]
        parses = yield from parse(parser, jobs)
        parsed = list(map(model.fit, parses))
        found = yield from model.golden_outputs()
        deviations[model.card.name] = model.golden.deviation(found, model.precision)
        changes = [
            *model.golden.moved_trees(parsed, model.card),
            *model.golden.moved_outputs(found, model.precision),
        ]
        if changes:
            moved[model.card.name] = changes
    return SelfTest(deviations, moved)
