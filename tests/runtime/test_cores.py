import os
from pathlib import Path

import pytest

from heedful.runtime.cores import usable_cores

HERE = len(os.sched_getaffinity(0))
PERIOD = 100_000


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))


def test_without_cgroups_the_affinity_mask_counts(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 8


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("max", 8), ("300000", 3), ("250000", 2), ("50000", 1), ("1600000", 8)],
)
def test_version_2(tmp_path: Path, limit: str, cores: int) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/pod/app\n")
    write(tmp_path / "sys/fs/cgroup/pod/app/cpu.max", f"{limit} {PERIOD}\n")
    assert usable_cores(tmp_path) == cores


def test_a_limit_of_a_cgroup_above_counts_too(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/pod/app\n")
    write(tmp_path / "sys/fs/cgroup/pod/app/cpu.max", f"max {PERIOD}\n")
    write(tmp_path / "sys/fs/cgroup/pod/cpu.max", f"200000 {PERIOD}\n")
    assert usable_cores(tmp_path) == 2


def test_inside_a_container_the_mount_is_the_cgroup(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    write(tmp_path / "sys/fs/cgroup/cpu.max", f"400000 {PERIOD}\n")
    assert usable_cores(tmp_path) == 4


@pytest.mark.parametrize(("limit", "cores"), [("-1", 8), ("300000", 3), ("10000", 1)])
def test_version_1(tmp_path: Path, limit: str, cores: int) -> None:
    write(tmp_path / "proc/self/cgroup", "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n")
    write(tmp_path / "sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", f"{limit}\n")
    write(tmp_path / "sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", f"{PERIOD}\n")
    assert usable_cores(tmp_path) == cores


def test_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert 1 <= usable_cores() <= HERE
