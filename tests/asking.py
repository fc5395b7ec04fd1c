"""Requests of plain texts to a service, in the way that a route asks."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy.typing as npt

from heedful.runtime.answers import Result
from heedful.runtime.explain.explain import ExplainResult
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.inputs import Inputs, Item
from heedful.runtime.model_registry import Task
from heedful.runtime.service import Service
from heedful.text.arrays import Floats

Array = npt.NDArray[Any]
T = TypeVar("T")


def present(value: T | None) -> T:
    """The value, which is there."""
    assert value is not None
    return value


async def embed(
    service: Service, texts: Sequence[Item], *, model: str | None = None, **fields: Any
) -> Result[Floats]:
    bound = service.bind("embed", model)
    return await service.answer(bound.embed(Inputs.from_texts(texts), **fields))


async def classify(service: Service, texts: Sequence[Item], **fields: Any) -> Result[Array]:
    bound = service.bind("classify")
    return await service.answer(bound.classify(Inputs.from_texts(texts), **fields))


async def nli(service: Service, pairs: Sequence[tuple[Item, Item]], **fields: Any) -> Result[Array]:
    inputs = Inputs.from_pairs(pairs, ("premise", "hypothesis"))
    return await service.answer(service.bind("nli").classify(inputs, **fields))


async def explain(
    service: Service,
    items: Sequence[Item],
    options: ExplainOptions | None = None,
    *,
    task: Task = "explain",
    model: str | None = None,
) -> Result[ExplainResult]:
    paths = ["inputs"] if len(items) == 1 else ["inputs.premise", "inputs.hypothesis"]
    inputs = Inputs(items, paths, texts_per_row=len(items))
    bound = service.bind(task, model)
    return await service.answer(bound.explain(inputs, options or ExplainOptions()))
