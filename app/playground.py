"""The page at /: the files of app/static, read once. Nothing in it comes from a request or another host."""

import hashlib
import mimetypes
from collections.abc import Awaitable, Callable
from pathlib import Path

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

    async def answer(request: Request) -> Response:
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return answer


def _path(file: Path) -> str:
    name = file.relative_to(STATIC).as_posix()
    return "/" if name == "index.html" else f"/static/{name}"


ROUTES = [
    Route(_path(file), _answering(file), methods=["GET"])
    for file in sorted(STATIC.rglob("*"))
    if file.is_file()
]
"""One for the page and one for each of its files. They hold no data, and need no API key."""
PATHS = frozenset(route.path for route in ROUTES)
