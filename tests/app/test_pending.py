"""Pending values give the same figures as prometheus_client's own calls."""

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import Metric

from heedful.app.observability.pending import PendingHistogram

BOUNDS = (1, 2, 4)


def samples(registry: CollectorRegistry) -> list[tuple[str, dict[str, str], float]]:
    found: list[Metric] = list(registry.collect())
    return [
        (one.name, one.labels, one.value)
        for family in found
        for one in family.samples
        if not one.name.endswith("_created")
    ]


def test_a_histogram_has_every_observation_in_its_bucket() -> None:
    values = [0, 0.5, 1, 1.5, 2, 2.0001, 4, 5, 1e9]
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    pending = PendingHistogram(Histogram("h", "-", buckets=BOUNDS, registry=ours), BOUNDS)
    expected = Histogram("h", "-", buckets=BOUNDS, registry=theirs)
    for value in values:
        pending.observe(value)
        expected.observe(value)
        if value == 1.5:
            pending.flush()
    pending.flush()
    pending.flush()  # which adds nothing
    assert samples(ours) == samples(theirs)
