"""The device is what a session comes up on: with a driver that is there and nothing else of CUDA, the CPU."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.driver import built
from benchmarks.processes import bundles
from heedful.runtime.device import resolve
from heedful.runtime.errors import ProviderError
from tests.process import PATIENCE, Process
from tests.shipped import BUNDLES

pytestmark = pytest.mark.skipif(resolve("auto") == "cuda", reason="says what happens without a GPU")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which it is found."""
    return built(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def process(driver: dict[str, str], tmp_path: Path) -> Iterator[Process]:
    with bundles(["ms-san-sst2", "disan-sst5"], BUNDLES) as models:
        flags = {"port": "0", "models": str(models), "processes": "2", "log-format": "text"}
        process = Process(tmp_path / "log", flags, driver)
        try:
            yield process
        finally:
            process.close()


def test_a_driver_without_cuda_is_the_cpu_service(process: Process, driver: dict[str, str]) -> None:
    url = process.ready()
    info = httpx.get(url + "/info", timeout=PATIENCE).json()
    assert (info["device"], info["provider"]) == ("cpu", "CPUExecutionProvider")
    assert set(info["precision"].values()) == {"int8"}
    assert len(process.servers()) == 2
    said = [line for line in process.log.splitlines() if "CUDA" in line]
    assert len(said) == 1
    assert "models run on the CPU: CUDA does not come up (lib" in said[0]
    assert "\x1b" not in process.log
    assert "Failed to load" not in process.log
    called = Path(driver["CUDA_CALLS"])
    calls = called.read_text().split() if called.exists() else []
    assert not {str(process.popen.pid), *map(str, process.servers())} & set(calls)


@pytest.mark.parametrize("there", [True, False])
def test_cuda_that_is_asked_for_and_does_not_come_up_ends_in_one_line(
    driver: dict[str, str], there: bool
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "heedful", "serve", "--device", "cuda", "--port", "0"],
        env={**os.environ, **(driver if there else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    reason = "lib[a-zA-Z.0-9]+: cannot open" if there else "there is no NVIDIA driver"
    assert ran.returncode == 1
    (said,) = [line for line in ran.stderr.splitlines() if "listening" not in line]
    assert "device is cuda, but CUDA does not come up (" in said
    assert "install the gpu extra" in said
    assert re.search(reason, said)


def test_the_cpu_is_not_tried() -> None:
    assert resolve("cpu") == resolve("auto") == "cpu"
    with pytest.raises(ProviderError, match="device is cuda"):
        resolve("cuda")
