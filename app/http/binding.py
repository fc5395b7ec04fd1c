"""What the inference routes share: the model that answers, and the record of its answer."""

from typing import TypeVar

from fastapi import Request

from heedful.app.http import request_record
from heedful.app.state import state_of
from heedful.runtime.answers import Result
from heedful.runtime.engine import work
from heedful.runtime.inference import Inference
from heedful.runtime.model_registry import Task

T = TypeVar("T")


def bind(request: Request, task: Task, model: str | None) -> Inference:
    """The model that answers, by its name or an alias. Raises Unavailable, UnknownModel, WrongTask."""
    state, entry = state_of(request.app), request_record.of(request.scope)
    bound = state.service.bind(task, state.real_name(model), bulk=entry.bulk)
    entry.model = bound.card.name
    return bound


async def answer(request: Request, asked: work.Request[T]) -> T:
    """The result of a bound model's request. Raises what `Service.answer` raises."""
    return await state_of(request.app).service.answer(asked)


def truncates(request: Request, asked: bool | None) -> bool:
    """Whether long texts are cut: as the request says, else as the operator has set."""
    return state_of(request.app).settings.truncate if asked is None else asked


def record_result(request: Request, result: Result[T]) -> T:
    """Record the counts and times of the answer, and give its value."""
    request_record.of(request.scope).answer(result)
    return result.value
