"""The page at /: files of app/static, read once. Nothing in it comes from a request or another host."""

import hashlib
import mimetypes
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

STATIC = Path(__file__).parent / "static"
HEADERS = {
    # Styles are set by script on single elements, which is no inline style; everything else is a file of ours.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # asked for anew each time, and answered 304
}


def router() -> APIRouter:
    """A route for the page and for each of its files."""
    made = APIRouter(tags=["page"])
    for file in sorted(path for path in STATIC.rglob("*") if path.is_file()):
        name = file.relative_to(STATIC).as_posix()
        page = name == "index.html"
        made.add_api_route(
            "/" if page else f"/static/{name}",
            _answering(file),
            methods=["GET"],
            name=f"page {name}",
            response_class=Response,
            responses={200: {"content": {"text/html": {}}}} if page else None,
            include_in_schema=page,
        )
    return made


def _answering(file: Path):  # type: ignore[no-untyped-def]  # FastAPI reads the inner annotations
    content = file.read_bytes()
    kind = mimetypes.guess_type(file.name)[0] or "text/plain"
    headers = {**HEADERS, "ETag": f'"{hashlib.sha256(content).hexdigest()[:16]}"'}

    async def playground(request: Request) -> Response:
        """A page that asks the service and draws what the models attended to."""
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return playground
