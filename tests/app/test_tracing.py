"""Spans, as OpenTelemetry's own SDK receives them; and that nothing is traced unasked."""

import http.server
import signal
import socket
import sys
from itertools import pairwise

import httpx
import pytest

from heedful.app.observability.tracing import ENDPOINTS, Tracing
from heedful.runtime.errors import StartupError
from tests.app.conftest import Serve, Start
from tests.app.posting import ask
from tests.http_server import serving

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

pytestmark = pytest.mark.anyio
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """The spans that an application sends which is created by the test."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(Tracing, "from_environment", lambda: Tracing(provider))
    return exporter


async def test_a_request_is_a_span_with_its_stages_below(
    serve: Serve, spans: InMemorySpanExporter
) -> None:
    async with serve() as client:
        sent = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-Id": "mine"}
        await client.post("/classify", json={"inputs": ["the kids", "dog"]}, headers=sent)
        await client.get("/health")
    *stages, request = spans.get_finished_spans()
    assert [span.name for span in stages] == ["parse", "queue", "inference"]
    assert (request.name, request.kind) == ("POST /classify", SpanKind.SERVER)
    assert request.parent
    assert request.context
    assert format(request.parent.span_id, "016x") == PARENT
    assert dict(request.attributes or {}) == {
        **{"http.request.method": "POST", "http.route": "/classify"},
        **{"http.response.status_code": 200, "heedful.request_id": "mine"},
        **{"heedful.model": "tiny-sst2", "heedful.inputs": 2},
    }
    times = [request.start_time]
    for stage in stages:
        assert stage.parent
        assert stage.context
        assert stage.parent.span_id == request.context.span_id
        assert format(stage.context.trace_id, "032x") == TRACE
        times += [stage.start_time, stage.end_time]
    times.append(request.end_time)
    whole = [time for time in times if time is not None]
    assert len(whole) == 8
    assert all(a <= b + 1000 for a, b in pairwise(whole))  # ns; rounding


async def test_an_error_is_a_span_alone_and_holds_nothing_of_the_clients(
    serve: Serve, spans: InMemorySpanExporter
) -> None:
    async with serve(start=False) as client:
        await client.get("/models")
    async with serve() as client:
        await client.post("/embed", json={"inputs": "secret", "model": "secret"})
        await client.post("/secret", params={"secret": "secret"}, json={})
    early, unknown, elsewhere = spans.get_finished_spans()
    names = [span.name for span in (early, unknown, elsewhere)]
    assert names == ["GET /models", "POST /embed", "POST other"]
    assert (unknown.attributes or {})["error.type"] == "model_not_found"
    assert [s.status.status_code for s in (unknown, early)] == [StatusCode.UNSET, StatusCode.ERROR]
    assert "secret" not in unknown.to_json() + elsewhere.to_json()


async def test_an_endpoint_gets_the_spans(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[tuple[str, bytes]] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=encoders-eu")
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)) as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        async with serve() as client:
            await ask(client, "/classify", inputs="dog")
    [(path, body)] = posted
    assert path == "/v1/traces"
    for word in (b"POST /classify", b"inference", b"encoders-eu", b"tiny-sst2"):
        assert word in body


def test_a_collector_that_never_answers_does_not_hold_the_end(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as collector:
        endpoint = f"http://127.0.0.1:{collector.getsockname()[1]}"
        process = start({"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, shutdown_timeout="0")
        assert httpx.post(process.ready() + "/classify", json={"inputs": "dog"}).status_code == 200
        process.popen.send_signal(signal.SIGTERM)
        assert process.exit_status() == 0


def test_nothing_is_traced_unasked_and_asking_needs_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert Tracing.from_environment() is None
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(StartupError, match=r"pip install 'heedful\[otel\]', or unset it"):
        Tracing.from_environment()
