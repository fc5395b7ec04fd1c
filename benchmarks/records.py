"""A record: what a program measured, with the command, the commit and the machine.

Each is results/performance/<program>.json; `python -m benchmarks.report` writes them up.
"""

import os
import platform
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.files.atomic import write_json
from heedful.runtime.cores import usable_cores
from heedful.training.source_commit import source_commit

RESULTS = Path("results/performance")
LOAD_AVERAGE = os.getloadavg()[0]
"""Load average of the minute before the start: other load on the machine."""

Row = Mapping[str, str | float | bool]
"""Column -> value."""


def table(caption: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Rows of the same columns, in order."""
    return {"caption": caption, "rows": rows}


def write(
    name: str,
    title: str,
    *tables: dict[str, Any],
    goals: Mapping[str, float] = {},
    folder: Path = RESULTS,
) -> None:
    """Write `folder`/`name`.json whole; `goals` are figures by the names of goals.toml."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{name}.json", record(name, title, *tables, goals=goals))


def record(
    name: str, title: str, *tables: dict[str, Any], goals: Mapping[str, float] = {}
) -> dict[str, Any]:
    """The content that `write` writes."""
    content = {
        "title": title,
        "command": shlex.join(["python", "-m", f"benchmarks.{name}", *sys.argv[1:]]),
        "commit": source_commit() or "unknown",
        "when": time.strftime("%Y-%m-%d"),
        "machine": {
            "processor": _processor(),
            "cores": usable_cores(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
            "python": platform.python_version(),
        },
        "load_average": LOAD_AVERAGE,
        "goals": dict(goals),
        "tables": tables,
    }
    rounded: dict[str, Any] = _rounded(content)
    return rounded


def _rounded(value: Any) -> Any:
    """Floats with four digits; more would be noise."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _processor() -> str:
    """The processor's name, and its instructions for matrix products."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.split(": ", 1)[1] for line in lines if line.startswith("model name")}
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    wide = [
        flag
        for flag in ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_int8")
        if flag in flags
    ]
    return ", ".join([*sorted(names), *wide])
