"""What FastAPI and Starlette would answer in their own words -> the envelope."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Match

from heedful.app.errors import (
    MalformedBody,
    Refused,
    bad_input,
    envelope,
)
from heedful.app.http.request_record import RECORD, Record
from heedful.runtime.errors import RequestError


def install(app: FastAPI) -> None:
    """Answer every error from a route or the framework with the envelope."""

    def record_of(request: Request) -> Record:
        record: Record = request.scope[RECORD]
        return record

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestError)
        return record_of(request).refuse(error)

    async def framework(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        record = record_of(request)
        if error.status_code == 404:
            return record.refuse(
                Refused("no such route; GET /docs lists them", code="route_not_found")
            )
        if error.status_code == 405:
            allowed = ", ".join(_allowed(request))
            message = f"{request.method} is not answered here; use {allowed}"
            return record.refuse(Refused(message, code="method_not_allowed"), {"Allow": allowed})
        return record.refuse(MalformedBody(str(error.detail)), error.headers)

    async def wrong_query(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        faults = [{**one, "loc": one["loc"][1:]} for one in error.errors()]  # without "query"
        return record_of(request).refuse(bad_input(faults))

    app.add_exception_handler(RequestError, refused)
    app.add_exception_handler(RequestValidationError, wrong_query)
    app.add_exception_handler(HTTPException, framework)


def _allowed(request: Request) -> list[str]:
    """The methods of the request's path. The framework names those of the path's first route only."""
    methods = {
        method
        for method in ("GET", "POST")
        for route in request.app.routes
        if route.matches({**request.scope, "method": method})[0] is Match.FULL
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
