"""Counts in shared memory give the figures of prometheus_client's own metrics, over all processes and for ever."""

import mmap
import os

import pytest
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import Metric

from heedful.app.observability.counts import PART_BYTES, RESERVED_BYTES, Counts, Part

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


def test_a_process_that_replaces_a_dead_one_goes_on_with_its_counters_alone() -> None:
    memory = parts(2)
    if not (pid := os.fork()):
        first = Counts(Part(memory[0]), memory)
        first.counter("c_total", "-", "route", "status")["/embed", 200].inc(3)
        first.gauge("g", "-")[()].set(7)
        os._exit(0)
    os.waitpid(pid, 0)
    counts = Counts(Part(memory[1]), memory)  # the parent's
    counter, _ = counts.counter("c_total", "-", "route", "status"), counts.gauge("g", "-")
    assert ("g", (), 7.0) in samples(registry(counts))
    counts.clear_gauges(memory[0])
    counter["/embed", 200].inc()
    second = Counts(Part(memory[0]), memory)
    second.counter("c_total", "-", "route", "status")["/embed", 200].inc()
    labels = (("route", "/embed"), ("status", "200"))
    assert samples(registry(counts)) == [("c_total", labels, 5.0), ("g", (), 0.0)]


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
