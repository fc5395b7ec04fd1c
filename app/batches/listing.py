"""OpenAI's lists, which clients read page by page."""

from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import Query
from pydantic import BaseModel
from starlette.responses import Response

from heedful.app.http import responses
from heedful.runtime.errors import BadInput

After = Annotated[str | None, Query(description="Begin after the one with this id.")]
Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    object: Literal["list"]
    data: list[Item]
    first_id: str | None
    last_id: str | None
    has_more: bool


def page(found: list[dict[str, Any]], after: str | None, limit: int) -> Response:
    """At most `limit` of the list, from the one after the id `after`. Raises BadInput."""
    if after is not None:
        ids = [one["id"] for one in found]
        if after not in ids:
            raise BadInput(
                f"after: {after[:100]!r} is not in the list; send an id of it", param="after"
            )
        found = found[ids.index(after) + 1 :]
    shown = found[:limit]
    return responses.json(
        {
            "object": "list",
            "data": shown,
            "first_id": shown[0]["id"] if shown else None,
            "last_id": shown[-1]["id"] if shown else None,
            "has_more": len(found) > limit,
        }
    )
