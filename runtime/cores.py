"""How many cores this process may use, by its affinity mask and its cgroup's quota."""

import os
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
        if not controllers:  # version 2
            mount = root / "sys/fs/cgroup"
        elif "cpu" in controllers.split(","):  # version 1
            mount = root / "sys/fs/cgroup/cpu"
        else:
            continue
        inside = Path(path.lstrip("/"))
        for folder in {mount / inside, *(mount / above for above in inside.parents)}:
            quota = _quota_v1(folder) if controllers else _quota_v2(folder)
            if quota is not None:
                quotas.append(quota)
    return quotas


def _quota_v2(folder: Path) -> float | None:
    """cpu.max holds "max 100000" or "150000 100000": microseconds allowed in each period."""
    try:
        allowed, period = (folder / "cpu.max").read_text().split()
    except OSError:
        return None
    return None if allowed == "max" else int(allowed) / int(period)


def _quota_v1(folder: Path) -> float | None:
    """The same in two files; -1 means no limit."""
    try:
        allowed = int((folder / "cpu.cfs_quota_us").read_text())
        period = int((folder / "cpu.cfs_period_us").read_text())
    except OSError:
        return None
    return None if allowed < 0 else allowed / period
