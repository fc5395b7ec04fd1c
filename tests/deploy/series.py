"""The names of the series that the service's metrics page holds."""

from heedful.app.observability.metrics import Metrics

SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


def served() -> set[str]:
    return {
        family.name + suffix for family in Metrics().collect() for suffix in SUFFIXES[family.type]
    }
