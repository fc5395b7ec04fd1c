"""The pages at / and /docs: the files of app/static, read once. They load nothing from other hosts."""

import base64
import hashlib
import mimetypes
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from heedful.app.schemas import openapi_responses

STATIC = Path(__file__).parents[1] / "static"
HEADERS = {
    # Scripts may set styles on elements, which CSP does not count as inline. The rest comes from our files.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # revalidated each time, 304 while unchanged
}


def _serve_file(file: Path) -> Callable[[Request], Awaitable[Response]]:
    content = file.read_bytes()
    kind = mimetypes.guess_type(file.name)[0] or "text/plain"
    headers = {**HEADERS, "ETag": f'"{hashlib.sha256(content).hexdigest()[:16]}"'}

    async def page(request: Request) -> Response:
        """A web page that queries the service and draws what the models attend to."""
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return page


PAGE = STATIC / "index.html"
router = APIRouter(tags=["page"])
router.get("/", response_class=Response, responses=openapi_responses.text("text/html"))(
    _serve_file(PAGE)
)
FILES = [
    Route(f"/static/{file.relative_to(STATIC).as_posix()}", _serve_file(file), methods=["GET"])
    for file in sorted(STATIC.rglob("*"))
    if file.is_file() and file != PAGE
]
PATHS = frozenset({"/", "/docs", "/openapi.json", *(route.path for route in FILES)})
"""The pages, their files and the document hold nothing of the service's data, and need no API key."""


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Swagger UI; `make vendor` fetches its files. Relative addresses hold behind a proxy's path too."""
    root = "../" if request.scope["raw_path"].endswith(b"/") else ""
    page = get_swagger_ui_html(
        openapi_url=f"{root}openapi.json",
        title="Heedful",
        swagger_js_url=f"{root}static/vendor/swagger-ui-bundle.js",
        swagger_css_url=f"{root}static/vendor/swagger-ui.css",
        swagger_favicon_url="data:,",
    ).body
    [script] = re.findall(rb"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    policy = HEADERS["Content-Security-Policy"].replace("img-src", "img-src data:")
    policy = policy.replace("script-src", f"script-src 'sha256-{digest}'")
    return Response(
        page, headers={**HEADERS, "Content-Security-Policy": policy}, media_type="text/html"
    )
