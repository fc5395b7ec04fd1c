"""OpenTelemetry spans of requests (the extra `otel`), created when a request has ended.

OpenTelemetry's environment variables configure it: nothing is imported unless one of ENDPOINTS is set. Spans
are built from the record, so that requests take the same path with and without tracing.
"""

import os
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from heedful.app.http.request_record import Record
from heedful.runtime.errors import StartupError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

CLOSE_SECONDS = 0.8
"""Time to export pending spans at the end, before the serving process is killed (app.process.server)."""
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Tracing:
    """A span per request with a child per stage. Spans hold no text."""

    def __init__(self, provider: "TracerProvider") -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("heedful")

    @classmethod
    def from_environment(cls) -> Self | None:
        """None unless an endpoint is set. Raises StartupError when the extra is not installed."""
        endpoints = [name for name in ENDPOINTS if os.environ.get(name)]
        if not endpoints:
            return None
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise StartupError(
                f"{endpoints[0]} is set, but OpenTelemetry is not installed: "
                "pip install 'heedful[otel]', or unset it"
            ) from error
        resource = Resource.create({SERVICE_NAME: "heedful"})
        provider = TracerProvider(resource=resource.merge(OTELResourceDetector().detect()))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    def request(self, record: Record, headers: Mapping[str, str], method: str, status: int) -> None:
        """Record a request that has just ended. `headers` may hold the caller's span (W3C traceparent)."""
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

        offset = time.time() - time.perf_counter()  # the record's clock -> seconds since 1970

        def nanoseconds(seconds: float) -> int:
            return int((offset + seconds) * 1e9)

        span = self._tracer.start_span(
            f"{method} {record.route}",
            context=extract(headers),
            kind=SpanKind.SERVER,
            start_time=nanoseconds(record.started),
            attributes={
                "http.request.method": method,
                "http.route": record.route,
                "http.response.status_code": status,
                "heedful.request_id": record.id,
                "heedful.model": record.model,
            },
        )
        if record.refusal is not None:
            span.set_attribute("error.type", record.refusal)
        if status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        if record.result is not None and record.answered is not None:
            span.set_attribute("heedful.inputs", record.result.inputs)
            stages = record.timing._asdict()
            start = record.answered - sum(stages.values())
            parent = set_span_in_context(span)
            for stage, seconds in stages.items():
                child = self._tracer.start_span(
                    stage, context=parent, start_time=nanoseconds(start)
                )
                start += seconds
                child.end(nanoseconds(start))
        span.end(nanoseconds(time.perf_counter()))

    def close(self) -> None:
        """Export pending spans and stop. Spans that no collector takes within CLOSE_SECONDS are lost."""
        thread = threading.Thread(target=self._provider.shutdown, daemon=True)
        thread.start()
        thread.join(CLOSE_SECONDS)
