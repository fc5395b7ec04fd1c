"""The page at /: the files of app/static, read once. Nothing in it comes from a request or another host."""

import hashlib
import mimetypes
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

STATIC = Path(__file__).parent / "static"
HEADERS = {
    # Script sets styles on single elements, which is no inline style; all else is a file of ours.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # asked for each time, and answered 304 while it is the same
}


def _answering(file: Path) -> Callable[[Request], Awaitable[Response]]:
    content = file.read_bytes()
    kind = mimetypes.guess_type(file.name)[0] or "text/plain"
    headers = {**HEADERS, "ETag": f'"{hashlib.sha256(content).hexdigest()[:16]}"'}

    async def page(request: Request) -> Response:
        """A page that asks the service, and draws what the models attended to."""
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return page


PAGE = STATIC / "index.html"
router = APIRouter(tags=["page"])
router.get("/", response_class=Response, responses={200: {"content": {"text/html": {}}}})(
    _answering(PAGE)
)
FILES = [
    Route(f"/static/{file.relative_to(STATIC).as_posix()}", _answering(file), methods=["GET"])
    for file in sorted(STATIC.rglob("*"))
    if file.is_file() and file != PAGE
]
PATHS = frozenset({"/", *(route.path for route in FILES)})
"""The page and its files hold no data, and need no API key."""
