"""The metrics of all serving processes, in memory that they share: no folder, no file on a disk.

Each process counts in its anonymous file, in prometheus_client's own format, and every process reads
all of them. A process that replaces a dead one continues its counters, its processor time among them.
"""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from threading import Lock
from typing import Any
from weakref import finalize

import orjson
from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.registry import Collector

NOT_SUMMED = "process_start_time_seconds"
"""The process metric whose sum is meaningless."""
PROCESSOR_TIME = "process_cpu_seconds"
PID = orjson.dumps(["pid", "", "", {}, ""]).decode()
"""The key of a process's id, which ends with it as gauges do."""
ENDED = orjson.dumps(["ended", "", "", {}, ""]).decode()
"""The key of the processor time of the dead processes that have counted in a file, in seconds."""
LIVING = ("gauge", "pid")

Labels = tuple[tuple[str, str], ...]


def value_class(file: int, *, serves: bool) -> type:
    """prometheus_client's class of values, which counts in `file` (of `os.memfd_create`)."""
    table, lock = MmapedDict(_path(file)), Lock()
    if serves:
        table.write_value(PID, os.getpid(), 0.0)

    class SharedValue:
        _multiprocess = True

        def __init__(
            self,
            typ: str,
            metric_name: str,
            name: str,
            labelnames: Sequence[str],
            labelvalues: Sequence[str],
            help_text: str,
            **_: Any,
        ) -> None:
            labels = dict(zip(labelnames, labelvalues, strict=True))
            self._key = orjson.dumps([typ, metric_name, name, labels, help_text]).decode()
            with lock:
                self._value: float = table.read_value(self._key)[0]

        def inc(self, amount: float) -> None:
            if amount:
                self.set(self._value + amount)

        def set(self, value: float) -> None:
            with lock:
                self._value = value
                table.write_value(self._key, value, 0.0)

        def get(self) -> float:
            return self._value

        def set_exemplar(self, exemplar: object) -> None:
            """There are none."""

        def get_exemplar(self) -> None:
            """There are none."""

    finalize(SharedValue, table.close).atexit = False  # until then a process counts
    return SharedValue


def keep_processor_time(file: int, processor_time: float) -> None:
    """Keep the processor time of a process that has died, in seconds, and set to 0 what it has measured."""
    table = MmapedDict(_path(file))
    table.write_value(ENDED, table.read_value(ENDED)[0] + processor_time, 0.0)
    for key, _, _ in list(table.read_all_values()):
        if orjson.loads(key)[0] in LIVING:
            table.write_value(key, 0.0, 0.0)
    table.close()


class SharedCounts(Collector):
    """The sums over all processes."""

    def __init__(self, files: Sequence[int]) -> None:
        self._files = files

    def collect(self) -> Iterator[Metric]:
        metrics: dict[str, Metric] = {}
        sums: dict[str, dict[tuple[str, Labels], float]] = {}
        pids, ended = [], 0.0
        for file in self._files:
            for key, value, _, _ in MmapedDict.read_all_values_from_file(_path(file)):
                kind, metric, name, labels, text = orjson.loads(key)
                if kind == "pid":
                    pids.append(int(value))
                    continue
                if kind == "ended":
                    ended += value
                    continue
                if metric not in metrics:
                    metrics[metric], sums[metric] = Metric(metric, text, kind), {}
                series = (name, tuple(labels.items()))
                sums[metric][series] = sums[metric].get(series, 0.0) + value
        for name, metric in metrics.items():
            _add_samples(metric, sums[name])
            yield metric
        yield from _processes((pid for pid in pids if pid), ended)


def _add_samples(metric: Metric, sums: dict[tuple[str, Labels], float]) -> None:
    """A histogram's buckets are stored with their own counts, and shown with those below.

    The samples of one label set stand together, as OpenMetrics asks for.
    """
    sets: dict[Labels, list[tuple[str, Labels, float]]] = {}
    counts: dict[Labels, float] = {}
    for (name, labels), value in sums.items():
        series = labels
        if name.endswith("_bucket"):
            series = labels[:-1]  # without `le`, whose values come in order
            counts[series] = value = counts.get(series, 0.0) + value
        sets.setdefault(series, []).append((name, labels, value))
    for series, count in counts.items():
        sets[series].append((f"{metric.name}_count", series, count))
    for samples in sets.values():
        for name, labels, value in samples:
            metric.add_sample(name, dict(labels), value)


def _processes(pids: Iterator[int], ended: float) -> Iterator[Metric]:
    """prometheus_client's process metrics, summed; with the processor time of those that have ended."""
    summed: dict[str, Metric] = {}
    for pid in pids:
        for family in ProcessCollector(pid=partial(int, pid), registry=None).collect():
            into = summed.setdefault(family.name, family)
            if into is not family and family.name != NOT_SUMMED:
                into.samples = [
                    mine._replace(value=mine.value + other.value)
                    for mine, other in zip(into.samples, family.samples, strict=True)
                ]
    if time := summed.get(PROCESSOR_TIME):
        time.samples = [sample._replace(value=sample.value + ended) for sample in time.samples]
    yield from summed.values()


def _path(file: int) -> str:
    return f"/proc/self/fd/{file}"
