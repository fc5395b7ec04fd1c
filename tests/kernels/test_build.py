"""setup.py where the kernels cannot be built, or are switched off."""

import sys
from pathlib import Path
from subprocess import CompletedProcess

from tests.process import ROOT, ran


def build(out: Path, **variables: str) -> CompletedProcess[str]:
    setup = ("setup.py", "-q", "build_ext", "--build-lib", out, "--build-temp", out)
    return ran(sys.executable, *setup, cwd=ROOT, **variables)


def test_a_build_that_fails_is_an_error_with_its_reason_and_a_remedy(tmp_path: Path) -> None:
    done = build(tmp_path, CFLAGS="-fno-such-option")
    assert done.returncode != 0
    assert "-fno-such-option" in done.stderr
    assert "HEEDFUL_KERNELS=0 installs without them" in done.stderr


def test_an_install_without_kernels_needs_no_compiler(tmp_path: Path) -> None:
    done = build(tmp_path, CC=str(tmp_path / "cc"), HEEDFUL_KERNELS="0")
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*"))
