"""What FastAPI and Starlette would answer in their own words -> our errors."""

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from heedful.app.errors import (
    MalformedBody,
    Refused,
    bad_input,
    envelope,
)
from heedful.runtime.errors import RequestError


def request_error(error: Exception, scope: Scope) -> tuple[RequestError, dict[str, str]] | None:
    """The error that the client is told of, and headers; None where something has failed here."""
    if isinstance(error, RequestError):
        return error, {}
    if isinstance(error, RequestValidationError):
        return bad_input(
            [{**one, "loc": one["loc"][1:]} for one in error.errors()]
        ), {}  # no "query"
    if not isinstance(error, HTTPException):
        return None
    if error.status_code == 404:
        return Refused("no such route; GET /docs lists them", code="route_not_found"), {}
    if error.status_code == 405:
        allowed = ", ".join(_allowed(scope))
        message = f"{scope['method']} is not answered here; use {allowed}"
        return Refused(message, code="method_not_allowed"), {"Allow": allowed}
    return MalformedBody(str(error.detail)), dict(error.headers or {})


def _allowed(scope: Scope) -> list[str]:
    """The methods of the request's path. The framework names those of the path's first route only."""
    methods = {
        method
        for method in ("GET", "POST")
        for route in scope["app"].routes
        if route.matches({**scope, "method": method})[0] is Match.FULL
    }
    return sorted(
        methods | ({"HEAD"} if "GET" in methods else set())
    )  # Recorder passes it on as GET


class CrossOrigin(CORSMiddleware):
    """Answers cross-origin requests as Starlette does."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Starlette's response, but a refusal has our error envelope."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        message = f"{bytes(response.body).decode()}: see HEEDFUL_CORS_ORIGINS"
        refusal = Refused(message, code="cors_refused")
        headers = {k: v for k, v in response.headers.items() if not k.startswith("content-")}
        return Response(envelope(refusal), response.status_code, headers, "application/json")
