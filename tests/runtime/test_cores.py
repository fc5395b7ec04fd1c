import os
from pathlib import Path

import pytest

from heedful.runtime.cores import usable_cores
from tests.writing import write

TWO, ONE = "0::/pod/app\n", "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n"
"""The files of the two versions of cgroups about a process."""
APP, POD, MOUNT = (f"sys/fs/cgroup/{inside}cpu.max" for inside in ("pod/app/", "pod/", ""))
QUOTA, PERIOD = (f"sys/fs/cgroup/cpu/docker/x/cpu.cfs_{name}_us" for name in ("quota", "period"))


CASES: list[tuple[str, dict[str, str], int]] = [
    ("", {}, 8),
    (TWO, {APP: "max 100000"}, 8),
    (TWO, {APP: "300000 100000"}, 3),
    (TWO, {APP: "250000 100000"}, 2),
    (TWO, {APP: "50000 100000"}, 1),
    (TWO, {APP: "1600000 100000"}, 8),
    (TWO, {APP: "max 100000", POD: "200000 100000"}, 2),
    ("0::/\n", {MOUNT: "400000 100000"}, 4),  # inside a container
    (ONE, {QUOTA: "-1", PERIOD: "100000"}, 8),
    (ONE, {QUOTA: "300000", PERIOD: "100000"}, 3),
    (ONE, {QUOTA: "10000", PERIOD: "100000"}, 1),
]


def test_the_smallest_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cores of a process whose affinity mask has eight."""
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))  # on this machine
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    for number, (cgroup, files, cores) in enumerate(CASES):
        known = {"proc/self/cgroup": cgroup} if cgroup else {}
        write(tmp_path / str(number), {**files, **known})
        assert usable_cores(tmp_path / str(number)) == cores, files
