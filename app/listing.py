"""OpenAI's lists, which clients read page by page."""

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from heedful.app import answers
from heedful.runtime.errors import BadInput

After = Annotated[str | None, Query(description="Begin behind the one with this id.")]


def page(found: list[dict[str, Any]], after: str | None, limit: int) -> Response:
    """At most `limit` of the list, from the one behind the id `after`. Raises BadInput."""
    if after is not None:
        ids = [one["id"] for one in found]
        if after not in ids:
            raise BadInput(
                f"after: {after[:100]!r} is not in the list; send an id of it", param="after"
            )
        found = found[ids.index(after) + 1 :]
    shown = found[:limit]
    return answers.json(
        {
            "object": "list",
            "data": shown,
            "first_id": shown[0]["id"] if shown else None,
            "last_id": shown[-1]["id"] if shown else None,
            "has_more": len(found) > limit,
        }
    )
