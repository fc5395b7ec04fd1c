"""Errors of FastAPI and Starlette -> errors of the service, with its messages and its envelope."""

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from heedful.app.errors import MalformedBody, Refused, bad_input, envelope
from heedful.runtime.errors import RequestError


def request_error(error: Exception, scope: Scope) -> tuple[RequestError, dict[str, str]] | None:
    """The error that the client gets, with headers; None for a failure of the service."""
    if isinstance(error, RequestError):
        return error, {}
    if isinstance(error, RequestValidationError):
        faults = [{**fault, "loc": fault["loc"][1:]} for fault in error.errors()]  # no "query"
        return bad_input(faults), {}
    if not isinstance(error, HTTPException):
        return None
    if error.status_code == 404:
        return Refused("no such route; GET /docs lists them", code="route_not_found"), {}
    if error.status_code == 405:
        allowed = ", ".join(_allowed_methods(scope))
        message = f"this route does not answer {scope['method']}; use {allowed}"
        return Refused(message, code="method_not_allowed"), {"Allow": allowed}
    return MalformedBody(str(error.detail)), dict(error.headers or {})


def _allowed_methods(scope: Scope) -> list[str]:
    """The methods of the request's path. The framework names those of the path's first route only."""
    methods = {
        method
        for method in ("GET", "POST")
        for route in scope["app"].routes
        if route.matches({**scope, "method": method})[0] is Match.FULL
    }
    if "GET" in methods:
        methods.add("HEAD")  # Recorder passes it on as GET
    return sorted(methods)


class CrossOrigin(CORSMiddleware):
    """Starlette's middleware, whose refusals have the service's envelope."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Starlette's response; a refusal in the service's envelope."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        message = f"{bytes(response.body).decode()}: see HEEDFUL_CORS_ORIGINS"
        refusal = Refused(message, code="cors_refused")
        headers = {k: v for k, v in response.headers.items() if not k.startswith("content-")}
        return Response(envelope(refusal), response.status_code, headers, "application/json")
