"""The self-test: the golden sentences of all models, on the live sessions and parser, and what has changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.runtime.engine.work import Steps, parse
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.parse import ParseJob, Parser


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Results by model. A model without golden vectors has no deviation."""

    deviations: Mapping[str, float | None]  # largest change of a value of a vector of length 1
    moved: Mapping[str, list[str]]  # changes in words, of the models that have changed


def self_test(models: Sequence[LoadedModel], parser: Parser) -> Steps[SelfTest]:
    """Parse and encode the golden sentences again, without the cache. Raises InferenceFailed, Unavailable."""
    moved: dict[str, list[str]] = {}
    for model in models:
        changes = yield from model.moved()
        if model.golden:
            limit, tree = model.card.max_tokens, model.card.tree
            jobs = [ParseJob(text, limit, tree) for text in model.golden.texts]
            parses = map(model.fit, (yield from parse(parser, jobs)))
            changes = [*model.golden.moved_trees(parses, model.card), *changes]
        if changes:
            moved[model.card.name] = changes
    return SelfTest({model.card.name: model.deviation for model in models}, moved)
