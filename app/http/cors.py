"""Cross-origin requests: Starlette's middleware, with refusals in our envelope."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from heedful.app.errors import OriginRefused, envelope


class CrossOrigin(CORSMiddleware):
    def preflight_response(self, request_headers: Headers) -> Response:
        """Starlette's response, but a refusal has our error envelope."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        refusal = OriginRefused(f"{bytes(response.body).decode()}: see HEEDFUL_CORS_ORIGINS")
        headers = {k: v for k, v in response.headers.items() if not k.startswith("content-")}
        return Response(envelope(refusal), response.status_code, headers, "application/json")
