"""The interactive documentation at /docs, from files in the package: it works without the internet."""

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse

router = APIRouter()


@router.get("/docs", include_in_schema=False)
async def docs() -> HTMLResponse:
    """Swagger UI; `make vendor` fetches its files."""
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="Heedful",
        swagger_js_url="/static/vendor/swagger-ui-bundle.js",
        swagger_css_url="/static/vendor/swagger-ui.css",
        swagger_favicon_url="data:,",
    )
