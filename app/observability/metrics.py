"""Prometheus metrics. No label holds a value that a client can choose freely."""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from heedful.app.http.request_record import Record
from heedful.app.observability.counts import Counts, Part
from heedful.app.process.table import ProcessTable, Slot
from heedful.runtime.bundles.card import Card
from heedful.runtime.observer import Observer

DURATIONS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)  # seconds
INPUTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
MODEL_LABELS = ("model", "encoder", "task", "version", "provider")
FORMATS = ("application/openmetrics-text", "text/plain", "text/*", "*/*")
"""Media types of the page, as an Accept header names them."""
NOT_SUMMED = "process_start_time_seconds"
"""The process metric whose sum is meaningless."""
RATIOS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class Processes(Collector):
    """prometheus_client's metrics of a process, summed over the serving processes."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table

    def collect(self) -> Iterator[Metric]:
        sums: dict[str, Metric] = {}
        pids = [slot.pid for slot in self._table.slots if slot.pid] or [os.getpid()]
        for pid in pids:
            for family in ProcessCollector(pid=partial(int, pid), registry=None).collect():
                total = sums.setdefault(family.name, family)
                if total is not family and family.name != NOT_SUMMED:
                    total.samples = [
                        old._replace(value=old.value + new.value)
                        for old, new in zip(total.samples, family.samples, strict=True)
                    ]
        if time := sums.get("process_cpu_seconds"):
            ended = self._table.parent.ended_seconds
            time.samples = [sample._replace(value=sample.value + ended) for sample in time.samples]
        yield from sums.values()


class Metrics(Observer):
    """The service's metrics: this process counts in its part, and the page shows the sums of all parts."""

    def __init__(self, slot: Slot | None = None) -> None:
        self._slot = slot or ProcessTable(1, 1).slots[0]
        parts = self._slot.table.counts
        part = Part(parts[self._slot.index])
        self.counts = counts = Counts(part, parts)
        self._page = CollectorRegistry()
        self._page.register(counts)
        self._models = Gauge("heedful_model_info", "Always 1.", MODEL_LABELS, registry=self._page)
        self._golden = Gauge(
            "heedful_golden_deviation",
            "Largest change of a value of the golden vectors, at the last look of this process.",
            ["model"],
            registry=self._page,
        )
        self._page.register(Processes(self._slot.table))
        counter, histogram = counts.counter, counts.histogram

        self._requests = counter(
            "heedful_requests_total", "Requests answered.", "route", "model", "status"
        )
        self._rejected = counter(
            "heedful_rejected_total", "Requests refused, by error code.", "reason"
        )
        self._tokens = counter("heedful_tokens_total", "Tokens read.", "model")
        self._truncated = counter(
            "heedful_truncated_inputs_total", "Inputs cut to fit the model.", "model"
        )
        self._composed = counter(
            "heedful_composed_tokens_total", "Tokens that are unlisted.", "model"
        )
        self._untypical = counter(
            "heedful_untypical_inputs_total", "Inputs unlike the training sentences.", "model"
        )
        self._duration = histogram(
            "heedful_request_duration_seconds",
            "From a request's head to its last byte.",
            DURATIONS,
            "route",
            "model",
        )
        self._stages = histogram(
            "heedful_stage_duration_seconds",
            "Time of a request in one stage.",
            DURATIONS,
            "stage",
            "model",
        )
        self._batch_inputs = histogram(
            "heedful_batch_inputs", "Sentences in a batch.", INPUTS, "model"
        )
        self._batch_tokens = histogram(
            "heedful_batch_tokens", "Tokens in a batch.", TOKENS, "model"
        )
        self._padding = histogram(
            "heedful_padding_ratio", "Share of a batch that is padding.", RATIOS, "model"
        )
        self._encoder_time = counter(
            "heedful_encoder_cpu_seconds_total", "Processor time of the encoder's batches.", "model"
        )
        self._hits = counter("heedful_cache_hits_total", "Values that were cached.", "cache")
        self._misses = counter(
            "heedful_cache_misses_total", "Values that had to be computed.", "cache"
        )
        self._queue = counts.gauge("heedful_queue_inputs", "Inputs waiting.", "stage")
        self._keys = counter("heedful_key_requests_total", "Requests by API key.", "key", "status")
        self.connections = counts.gauge("heedful_connections", "Open connections of clients.")
        self.limits = counter(
            "heedful_limits_total",
            "Connections and requests ended by a limit, by setting.",
            "limit",
        )
        self.lines_dropped = counter(
            "heedful_log_lines_dropped_total", "Log lines that nobody read in time."
        )
        self.deaths = counter("heedful_process_deaths_total", "Serving processes that died.")
        self.reloads = counter("heedful_reloads_total", "Reloads of the bundles.", "result")
        self.deaths[()].inc(0)
        self.lines_dropped[()].inc(0)
        self.connections[()].set(0)
        # 0 from the start: the first increase is visible, and a queue is shown empty.
        for result in ("ok", "refused"):
            self.reloads[result].inc(0)
        for stage in ("parse", "inference"):
            self._queue[stage].set(0)

    def batch(
        self, model: str, inputs: int, tokens: int, padding: float, processor_seconds: float
    ) -> None:
        self._batch_inputs[model].observe(inputs)
        self._batch_tokens[model].observe(tokens)
        self._padding[model].observe(padding)
        self._encoder_time[model].inc(processor_seconds)

    def untypical(self, model: str, inputs: int) -> None:
        self._untypical[model].inc(inputs)

    def cache(self, name: str, hits: int, misses: int) -> None:
        self._hits[name].inc(hits)
        self._misses[name].inc(misses)

    def waiting(self, items: Mapping[str, int]) -> None:
        for stage, number in items.items():
            self._queue[stage].set(number)

    def refused(self, status: int, code: str) -> None:
        """Count an error that a connection got before the application saw a request. Its duration is unknown."""
        self._requests["other", "none", status].inc()
        self._rejected[code].inc()

    def golden(self, deviations: Mapping[str, float | None]) -> None:
        """Set the deviations of each model's golden vectors."""
        self._golden.clear()
        for model, deviation in deviations.items():
            if deviation is not None:
                self._golden.labels(model).set(deviation)

    def models(self, cards: Iterable[Card], provider: str) -> None:
        """Replace the list of served models."""
        self._models.clear()
        for card in cards:
            values = (card.name, card.encoder.name, card.task, card.version, provider)
            self._models.labels(*values).set(1)

    def request(self, record: Record, status: int, ended: float) -> None:
        """Count a request, once, which ended at `ended` on the record's clock."""
        route, model = record.route, record.model
        self._requests[route, model, status].inc()
        self._duration[route, model].observe(ended - record.started)
        if record.key is not None:
            self._keys[record.key, status].inc()
        if record.refusal:
            self._rejected[record.refusal].inc()
        if record.result is not None and record.answered is not None:
            result, timing = record.result, record.timing
            self._tokens[model].inc(result.tokens)
            self._truncated[model].inc(result.truncated)
            self._composed[model].inc(result.unlisted)
            self._untypical[model].inc(0)  # so that the first increase is visible
            self._stages["parse", model].observe(timing.parse)
            self._stages["queue", model].observe(timing.queue)
            self._stages["inference", model].observe(timing.inference)
            self._stages["respond", model].observe(ended - record.answered)

    def collect(self) -> Iterable[Metric]:
        """All metrics with their samples."""
        return self._page.collect()

    def page(self, accepted: Mapping[str, float]) -> tuple[bytes, str]:
        """The page in the accepted format with the largest weight, and its content type."""
        weights = {
            name: weight for name, weight in accepted.items() if name.partition(";")[0] in FORMATS
        }
        largest = max(weights.values(), default=0.0)
        best = [name for name, weight in weights.items() if weight == largest > 0]
        if any(name.startswith(FORMATS[0]) for name in best):
            return openmetrics.generate_latest(self._page), openmetrics.CONTENT_TYPE_LATEST
        return generate_latest(self._page), CONTENT_TYPE_PLAIN_0_0_4
