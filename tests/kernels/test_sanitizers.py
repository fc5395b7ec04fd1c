"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, which end the process at the first fault."""

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from heedful import kernels
from tests.export.test_operators import model_of
from tests.kernels.drive import inputs
from tests.process import ROOT, output, ran

SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=all"
COMPILER = os.environ.get("CC", "gcc")


def runtime_library(name: str) -> str:
    """The compiler's path of a library; only its name if the compiler does not have it."""
    return output(COMPILER, f"-print-file-name={name}").strip()


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "/" not in runtime_library("libasan.so") and "CI" not in os.environ,
        reason="the C compiler has no AddressSanitizer",
    ),
]


def sources(folder: Path) -> Path:
    """A copy of what compiles the kernels."""
    shutil.copytree(ROOT / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("*.so"))
    shutil.copy(ROOT / "setup.py", folder)
    return folder


def compiled(folder: Path, flags: str) -> dict[str, Path]:
    """The libraries that setup.py builds from a copy of the sources, by the names of the builds."""
    build = ("setup.py", "-q", "build_ext", "--build-lib", "built")
    output(sys.executable, *build, cwd=folder, CFLAGS=f"{flags} -g", LDFLAGS=flags)
    libraries = (folder / "built").rglob("*.so")
    return {path.name.partition(".")[0]: path for path in libraries}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphs")
    for name, arrays in inputs(np.random.default_rng(0), 1, 1, 6):
        (folder / f"{name}.onnx").write_bytes(model_of(name, arrays, defined=False))
    return folder


def drive(library: Path, graphs: Path) -> subprocess.CompletedProcess[str]:
    # ASan intercepts C++'s exceptions, so libstdc++ has to be there when it begins.
    preloaded = map(runtime_library, ("libasan.so", "libstdc++.so"))
    environment = {
        "LD_PRELOAD": ":".join(preloaded),
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter frees nothing at its end
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    drive = (sys.executable, "-m", "tests.kernels.drive", library, graphs)
    return ran(*drive, cwd=ROOT, **environment)


def test_no_operator_reads_or_writes_outside_its_arrays(graphs: Path, tmp_path: Path) -> None:
    libraries = compiled(sources(tmp_path), SANITIZERS)
    assert set(libraries) == set(kernels.BUILDS if platform.machine() == "x86_64" else ["plain"])
    for build in libraries:
        if not ctypes.CDLL(str(kernels.path_of(build))).runs_here():
            continue
        done = drive(libraries[build], graphs)
        assert done.returncode == 0, f"{build}: {done.stderr[-4000:]}"
        operators = (ROOT / "kernels" / "operators.c").read_text().count(".name = ")
        said = rf"{operators} operators, \d{{4,}} answers, \d{{3,}} refusals"
        assert re.match(said, done.stdout), done.stdout


def test_a_planted_fault_is_reported(graphs: Path, tmp_path: Path) -> None:
    folder = sources(tmp_path)
    source = folder / "kernels" / "rows.c"
    changed, count = re.subn(r"(?s)(void blend.*?d) < width", r"\1 <= width", source.read_text())
    assert count == 1
    source.write_text(changed)
    done = drive(compiled(folder, SANITIZERS)["plain"], graphs)
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr, done.stderr[-4000:]
