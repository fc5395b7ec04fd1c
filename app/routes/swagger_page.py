"""The interactive documentation at /docs, from files in the package: it works without the internet."""

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import HTMLResponse

router = APIRouter()


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    """Swagger UI; `make vendor` fetches its files. Relative addresses hold behind a proxy's path too."""
    root = "../" if request.scope["raw_path"].endswith(b"/") else ""
    return get_swagger_ui_html(
        openapi_url=f"{root}openapi.json",
        title="Heedful",
        swagger_js_url=f"{root}static/vendor/swagger-ui-bundle.js",
        swagger_css_url=f"{root}static/vendor/swagger-ui.css",
        swagger_favicon_url="data:,",
    )
