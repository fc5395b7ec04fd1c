"""The number of cores that this process may use, by its affinity mask and its cgroup's quota."""

import os
from contextlib import suppress
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> int:
    """Whole cores, at least 1. `root` holds /proc and /sys."""
    on_linux = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if on_linux else os.cpu_count() or 1
    return max(1, int(min([float(cores), *_quotas(root)])))


def _quotas(root: Path) -> list[float]:
    """Cores allowed by this process's cgroup and its ancestors, if they set a limit."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    quotas: list[float] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2: "max 100000" or "150000 100000"
            mount, files = root / "sys/fs/cgroup", ["cpu.max"]
        elif "cpu" in controllers.split(","):  # version 1: two files, -1 for no limit
            mount, files = root / "sys/fs/cgroup/cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        group = Path(path.lstrip("/"))
        for folder in {mount / group, *(mount / ancestor for ancestor in group.parents)}:
            with suppress(OSError):
                quota, period = " ".join((folder / file).read_text() for file in files).split()
                if quota not in ("max", "-1"):
                    quotas.append(int(quota) / int(period))
    return quotas
