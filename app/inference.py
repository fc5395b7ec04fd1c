"""What the routes that work have in common: their model, their record, the names in their errors."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fastapi import Request

from heedful.app import record
from heedful.app.state import state_of
from heedful.app.status import ready_service
from heedful.runtime.answers import Result
from heedful.runtime.card import Card
from heedful.runtime.errors import BadInput, TooManyInputs
from heedful.runtime.model_registry import Task
from heedful.runtime.service import Service


def model(request: Request, task: Task, name: str | None) -> tuple[Service, Card]:
    """The service, and the card of the model that will answer.

    Raises Unavailable while no model is loaded, UnknownModel, WrongTask.
    """
    service = state_of(request.app).service
    if not service.cards:
        ready_service(request)
    card = service.card(task, name)
    record.of(request.scope).model = card.name
    return service, card


def done(request: Request, result: Result[Any]) -> None:
    """The service has answered: keep what it took."""
    record.of(request.scope).answer(result)


@contextmanager
def called(names: Mapping[str, str]) -> Iterator[None]:
    """The service's names of fields -> the client's, in the errors raised inside."""
    try:
        yield
    except (BadInput, TooManyInputs) as error:
        if error.param is None or error.param not in names:
            raise
        param = names[error.param]
        message = str(error).replace(error.param, param)
        raise type(error)(message, param=param, code=error.code) from None
