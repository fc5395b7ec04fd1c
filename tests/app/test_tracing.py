"""Spans, as a collector receives them; and that nothing is traced unasked."""

import signal
import socket
import sys
from itertools import chain, pairwise
from typing import Any

import httpx
import pytest

from heedful.app.observability.tracing import ENDPOINTS, Tracing
from heedful.runtime.errors import StartupError
from heedful.runtime.service import Service
from tests.app.conftest import KEY, Serve, Start
from tests.app.posting import bearer
from tests.http_server import Keeping, serving

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

pytestmark = pytest.mark.anyio
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SERVER, ERROR = 2, 2
"""A span's kind, and its status."""


def fields_of(attributes: Any) -> dict[str, Any]:
    values = {one.key: one.value for one in attributes}
    return {key: value.string_value or value.int_value for key, value in values.items()}


async def test_a_request_is_a_span_with_its_stages_below(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error is a span alone. None holds anything of the client's."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=encoders-eu")
    collector = Keeping()
    with serving(collector) as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        async with serve(api_key=KEY) as client:
            client.headers.update(bearer(KEY))
            sent = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-Id": "mine"}
            body = {"inputs": ["the kids", "secret"]}
            await client.post("/classify", json=body, headers=sent)
            await client.post("/embed", json={"inputs": "secret", "model": "secret"})
            await client.post("/secret", params={"secret": "secret"}, json={})
            monkeypatch.setattr(Service, "reload", lambda _: 1 / 0)
            await client.post("/models/reload")
    assert {path for path, _ in collector.posted} == {"/v1/traces"}
    assert b"secret" not in b"".join(body for _, body in collector.posted)
    batches = [ExportTraceServiceRequest.FromString(body) for _, body in collector.posted]
    resources = list(chain.from_iterable(batch.resource_spans for batch in batches))
    assert fields_of(resources[0].resource.attributes)["service.name"] == "encoders-eu"
    scopes = chain.from_iterable(resource.scope_spans for resource in resources)
    *stages, request, unknown, elsewhere, fault = chain.from_iterable(one.spans for one in scopes)
    assert [span.name for span in stages] == ["parse", "queue", "inference"]
    assert (request.name, request.kind) == ("POST /classify", SERVER)
    assert request.parent_span_id.hex() == PARENT
    assert fields_of(request.attributes) == {
        **{"http.request.method": "POST", "http.route": "/classify"},
        **{"http.response.status_code": 200, "heedful.request_id": "mine"},
        **{"heedful.model": "tiny-sst2", "heedful.inputs": 2},
    }
    times = [request.start_time_unix_nano]
    for stage in stages:
        assert stage.parent_span_id == request.span_id
        assert stage.trace_id.hex() == TRACE
        times += [stage.start_time_unix_nano, stage.end_time_unix_nano]
    times.append(request.end_time_unix_nano)
    assert all(a <= b + 1000 for a, b in pairwise(times))  # ns; rounding
    assert [unknown.name, elsewhere.name] == ["POST /embed", "POST other"]
    assert fields_of(unknown.attributes)["error.type"] == "model_not_found"
    assert (unknown.status.code, fault.status.code) == (0, ERROR)


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
