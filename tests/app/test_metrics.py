"""The metrics count what they say, with no label that a client can choose.

Counts in shared memory give the figures of prometheus_client's own metrics, over all processes and always.
tests/deploy/test_monitoring.py has the names that rules and the dashboard use.
"""

import mmap
import time

import pytest
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from heedful.app.observability.counts import PART_BYTES, RESERVED_BYTES, Counts, Part
from tests.app.conftest import Serve
from tests.app.posting import Client, metrics

pytestmark = pytest.mark.anyio
NAMES = """
padding_ratio_count model
queue_inputs stage
untypical_inputs_total model
process_deaths_total
reloads_total result
model_info model encoder task version provider
"""
"""Those whose figures this test does not know."""
Key = tuple[str, frozenset[tuple[str, str]]]


async def read(client: Client) -> dict[Key, float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(await metrics(client))
        for sample in family.samples
    }


def key(name: str, **labels: str) -> Key:
    return f"heedful_{name}", frozenset(labels.items())


async def test_every_metric_counts_what_it_says(serve: Serve) -> None:
    async with serve() as client:
        long = "kids " * 30  # 30 tokens, of which the model reads 16
        for body in (
            {"inputs": ["the kids zyx", "dog"]},
            {"inputs": "dog"},
            {"inputs": long, "truncate": True, "model": "tiny-sst2"},
            {"inputs": "a", "model": "a client's own word"},
            {"inputs": ""},
        ):
            await client.post("/classify", json=body)
        await client.post("/another/of/its/words", json={})
        await client.get("/health")
        page = await read(client)
    for name, *known in map(str.split, NAMES.strip().splitlines()):
        kinds = [set(dict(pairs)) for sample, pairs in page if sample == f"heedful_{name}"]
        assert set(known) in kinds, name
    requests = {
        (labels["route"], labels["model"], labels["status"]): value
        for (name, pairs), value in page.items()
        if name == "heedful_requests_total" and (labels := dict(pairs))
    }
    assert requests == {
        ("/classify", "tiny-sst2", "200"): 3,
        ("/classify", "other", "404"): 1,
        ("/classify", "tiny-sst2", "422"): 1,
        ("other", "none", "404"): 1,
        ("/health", "none", "200"): 1,
    }
    sst2 = {"model": "tiny-sst2"}
    for name, labels, count in (
        ("request_duration_seconds_count", {"route": "/classify", **sst2}, 4),
        ("stage_duration_seconds_count", {"stage": "parse", **sst2}, 3),
        ("stage_duration_seconds_count", {"stage": "queue", **sst2}, 3),
        ("stage_duration_seconds_count", {"stage": "inference", **sst2}, 3),
        ("stage_duration_seconds_count", {"stage": "respond", **sst2}, 3),
        ("tokens_total", sst2, 3 + 1 + 1 + 16),
        ("composed_tokens_total", sst2, 1),
        ("truncated_inputs_total", sst2, 1),
        ("rejected_total", {"reason": "model_not_found"}, 1),
        ("rejected_total", {"reason": "route_not_found"}, 1),
        ("batch_inputs_sum", sst2, 3),
        ("batch_tokens_sum", sst2, 20),
        ("cache_hits_total", {"cache": "vector"}, 1),
        ("cache_misses_total", {"cache": "vector"}, 3),
    ):
        assert page[key(name, **labels)] == count, (name, labels)
    assert 0 < page[key("encoder_cpu_seconds_total", **sst2)] < time.process_time()
    assert "word" not in str(page)


BOUNDS = (1, 2, 4)
Sample = tuple[str, tuple[tuple[str, str], ...], float]


def parts(number: int, size: int = PART_BYTES) -> list[memoryview]:
    return [memoryview(mmap.mmap(-1, size)) for _ in range(number)]


def samples(registry: CollectorRegistry) -> list[Sample]:
    families: list[Metric] = list(registry.collect())
    return sorted(
        (sample.name, tuple(sorted(sample.labels.items())), sample.value)
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    )


def registry(counts: Counts) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(counts)
    return registry


def test_a_histogram_has_every_observation_in_its_bucket() -> None:
    memory = parts(2)
    expected = CollectorRegistry()
    reference = Histogram("h", "-", ["model"], buckets=BOUNDS, registry=expected)
    for part in memory:
        counts = Counts(Part(part), memory)
        histogram = counts.histogram("h", "-", BOUNDS, "model")
        for value in (0, 0.5, 1, 1.5, 2, 2.0001, 4, 5, 1e9):
            histogram["m"].observe(value)
            reference.labels("m").observe(value)
    assert samples(registry(counts)) == samples(expected)


def test_the_gauges_of_a_dead_process_are_cleared_and_its_counters_stay() -> None:
    memory = parts(2)
    dead, alive = (Counts(Part(part), memory) for part in memory)
    for counts in (dead, alive):
        counts.counter("c_total", "-", "route")["/embed"].inc(3)
        counts.gauge("g", "-")[()].set(7)
    alive.clear_gauges(memory[0])
    expected = [("c_total", (("route", "/embed"),), 6.0), ("g", (), 7.0)]
    assert samples(registry(alive)) == expected


@pytest.mark.parametrize("size", [RESERVED_BYTES + 4096, 2 * RESERVED_BYTES])
def test_what_a_full_part_has_no_place_for_counts_as_other(size: int) -> None:
    memory = parts(1, size)
    counts = Counts(Part(memory[0]), memory)
    counter = counts.counter("c_total", "-", "model")
    for i in range(5000):
        counter[f"a-model-{i}"].inc()
    values = {labels: value for _, labels, value in samples(registry(counts))}
    assert sum(values.values()) == 5000
    assert values[(("model", "other"),)] > 1000
    assert 50 < len(values) < 5000
