"""Prometheus metrics. No label holds a value that a client can choose freely.

What requests count waits for at most FLUSH_SECONDS in the process (see `pending`). The page of that process has it
at once, the pages of other processes after it was handed on.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
    values,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from heedful.app.http.request_record import Record
from heedful.app.observability.pending import PendingMetrics
from heedful.app.observability.shared_counts import SharedCounts, keep_processor_time, value_class
from heedful.app.process.table import ProcessTable, Slot
from heedful.runtime.bundles.card import Card
from heedful.runtime.observer import Observer

DURATIONS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)  # seconds
INPUTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
MODEL_LABELS = ("model", "encoder", "task", "version", "provider")
FLUSH_SECONDS = 0.25
"""How long what requests count may wait. A process that is killed loses that much."""
FORMATS = ("application/openmetrics-text", "text/plain", "text/*", "*/*")
"""Of the page, as an Accept header names them."""
RATIOS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class Models(Collector):
    """Gauges of the served models. The library's own metrics would keep models that were removed."""

    def __init__(self) -> None:
        self.served: list[tuple[str, ...]] = []
        self.deviations: Mapping[str, float | None] = {}

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily(
            "heedful_model_info",
            "Always 1.",
            labels=MODEL_LABELS,
        )
        for labels in self.served:
            info.add_metric(labels, 1)
        yield info
        golden = GaugeMetricFamily(
            "heedful_golden_deviation",
            "Largest change of a value of the golden vectors, at the last look of this process.",
            labels=["model"],
        )
        for model, deviation in self.deviations.items():
            if deviation is not None:
                golden.add_metric([model], deviation)
        yield golden


class Metrics(Observer):
    """The service's metrics in their own registry."""

    def __init__(self, slot: Slot | None = None) -> None:
        """The page shows the sum of all processes of the slot's table."""
        self._slot = slot or ProcessTable(1, 1).slots[0]
        disable_created_metrics()  # they double the page, and rates do not need them
        registry, self._page = _registries(self._slot)
        self._models = Models()
        self._page.register(self._models)
        self._pending = PendingMetrics("heedful", registry)
        self._timer: asyncio.TimerHandle | None = None
        counter, histogram = self._pending.counter, self._pending.histogram

        self._requests = counter("requests_total", "Requests answered.", "route", "model", "status")
        self._rejected = counter("rejected_total", "Requests refused, by error code.", "reason")
        self._tokens = counter("tokens_total", "Tokens read.", "model")
        self._truncated = counter("truncated_inputs_total", "Inputs cut to fit the model.", "model")
        self._composed = counter("composed_tokens_total", "Tokens that are unlisted.", "model")
        self._untypical = counter(
            "untypical_inputs_total", "Inputs unlike the training sentences.", "model"
        )
        self._duration = histogram(
            "request_duration_seconds",
            "From a request's head to its last byte.",
            DURATIONS,
            "route",
            "model",
        )
        self._stages = histogram(
            "stage_duration_seconds", "Time of a request in one stage.", DURATIONS, "stage", "model"
        )
        self._batch_inputs = histogram("batch_inputs", "Sentences in a batch.", INPUTS, "model")
        self._batch_tokens = histogram("batch_tokens", "Tokens in a batch.", TOKENS, "model")
        self._padding = histogram(
            "padding_ratio", "Share of a batch that is padding.", RATIOS, "model"
        )
        self._encoder_time = counter(
            "encoder_cpu_seconds_total", "Processor time of the encoder's batches.", "model"
        )
        self._hits = counter(
            "cache_hits_total", "Values that were cached or already in flight.", "cache"
        )
        self._misses = counter("cache_misses_total", "Values that had to be computed.", "cache")
        self._queue = self._pending.gauge("queue_inputs", "Inputs waiting.", "stage")
        self._keys = counter("key_requests_total", "Requests by API key.", "key", "status")
        self._connections = Gauge(
            "heedful_connections", "Open connections of clients.", registry=registry
        )
        self._limits = counter(
            "limits_total", "Connections and requests ended by a limit, by setting.", "limit"
        )
        self._deaths = Counter(
            "heedful_process_deaths_total", "Serving processes that died.", registry=registry
        )
        self._reloads = counter("reloads_total", "Reloads of the bundles.", "result")
        # From the start at 0: the first increase is visible, and a queue that nothing has waited in is empty.
        for result in ("ok", "refused"):
            self._reloads[result].flush()
        for stage in ("parse", "inference"):
            self._queue[stage].flush()

    def batch(
        self, model: str, inputs: int, tokens: int, padding: float, processor_seconds: float
    ) -> None:
        """A batch was run; `padding` is the share of its positions without a token.

        `processor_seconds` are those of the thread that ran it.
        """
        self._batch_inputs[model].observe(inputs)
        self._batch_tokens[model].observe(tokens)
        self._padding[model].observe(padding)
        self._encoder_time[model].more += processor_seconds
        self._flush_later()

    def untypical(self, model: str, inputs: int) -> None:
        """So many more inputs were unlike the training sentences."""
        self._untypical[model].more += inputs
        self._flush_later()

    def queue(self, stage: str, inputs: int) -> None:
        """Inputs waiting for `stage` now."""
        self._queue[stage].value = inputs
        self._flush_later()

    def cache(self, name: str, hits: int, misses: int) -> None:
        """One request's cache hits and misses."""
        self._hits[name].more += hits
        self._misses[name].more += misses
        self._flush_later()

    def connections(self, n: int) -> None:
        """Open connections now."""
        self._connections.set(n)

    def limit(self, setting: str) -> None:
        """A connection, a request or a process met the limit of a setting."""
        met = self._limits[setting]
        met.more += 1
        met.flush()  # at once: there is no event loop in the supervisor, and no request waits for this

    def refused(self, status: int, code: str) -> None:
        """A connection was answered with an error before the application saw a request, whose time is unknown."""
        for one in (self._requests["other", "none", status], self._rejected[code]):
            one.more += 1
            one.flush()

    def death(self) -> None:
        """A serving process has died."""
        self._deaths.inc()

    def ended(self, slot: Slot, processor_seconds: float) -> None:
        """The process of this slot has ended; it took so much processor time."""
        keep_processor_time(slot.table.counts[slot.index], processor_seconds)

    def golden(self, deviations: Mapping[str, float | None]) -> None:
        """Replace how far the golden vectors of each model have moved."""
        self._models.deviations = deviations

    def models(self, cards: Iterable[Card], provider: str) -> None:
        """Replace the list of served models."""
        self._models.served = [
            (card.name, card.encoder.name, card.task, card.version, provider) for card in cards
        ]

    def reload(self, *, refused: bool) -> None:
        """The bundles were reloaded; `refused` when one of them was refused."""
        done = self._reloads["refused" if refused else "ok"]
        done.more += 1
        done.flush()

    def request(self, record: Record, status: int, ended: float) -> None:
        """A request ended, at `ended` on the record's clock. Called once per request."""
        route, model = record.route, record.model
        self._requests[route, model, status].more += 1
        self._duration[route, model].observe(ended - record.started)
        if record.key is not None:
            self._keys[record.key, status].more += 1
        if record.refusal:
            self._rejected[record.refusal].more += 1
        if record.result is not None and record.answered is not None:
            result, timing = record.result, record.result.timing
            self._tokens[model].more += result.tokens
            self._truncated[model].more += result.truncated
            self._composed[model].more += result.unlisted
            self._untypical[model].more += 0  # starts at 0, so that the first increase is visible
            self._stages["parse", model].observe(timing.parse)
            self._stages["queue", model].observe(timing.queue)
            self._stages["inference", model].observe(timing.inference)
            self._stages["respond", model].observe(ended - record.answered)
        self._flush_later()

    def _flush_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Hand on what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pending.flush()

    def collect(self) -> Iterable[Metric]:
        """Every metric with its samples."""
        self.flush()
        return self._page.collect()

    def page(self, accepted: Mapping[str, float]) -> tuple[bytes, str]:
        """The page in the format that is accepted with the largest weight, and its content type."""
        self.flush()
        known = {offer: of for offer, of in accepted.items() if offer.partition(";")[0] in FORMATS}
        largest = max(known.values(), default=0.0)
        best = [offer for offer, weight in known.items() if weight == largest > 0]
        encode, content_type = choose_encoder(",".join(best))
        return encode(self._page), content_type


def _registries(slot: Slot) -> tuple[CollectorRegistry, CollectorRegistry]:
    """Where this process counts, and what its page shows."""
    own = CollectorRegistry()
    if len(slot.table.slots) == 1:
        # It is global: another service of this process may have set it.
        values.ValueClass = values.MutexValue
        ProcessCollector(registry=own)
        return own, own
    file = slot.table.counts[slot.index]
    values.ValueClass = value_class(file, serves=slot is not slot.table.parent)
    page = CollectorRegistry()
    page.register(SharedCounts(slot.table.counts))
    return own, page
