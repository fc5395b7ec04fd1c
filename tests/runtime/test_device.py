"""The device is what a session comes up on: with a driver that is there and nothing else of CUDA, the CPU.

`tests/device` stands in for the rest of CUDA, so that the service runs as on a GPU, with the memory of a small one.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from benchmarks.driver import build_driver
from benchmarks.processes import bundles
from heedful.runtime.device import SHARE, resolve
from tests.builders import build_bundle, build_parser
from tests.process import PATIENCE, ROOT, Process, ran, wait_for
from tests.shipped import BUNDLES

pytestmark = pytest.mark.skipif(resolve("auto") == "cuda", reason="says what happens without a GPU")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables with which a program finds the driver."""
    return build_driver(tmp_path_factory.mktemp("driver"))


PROCESSES, MEMORY = 2, 512 * 1024
"""Bytes of the stand-in's device for a process."""


@pytest.fixture(scope="module")
def gpu(driver: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A service on the stand-in for a device."""
    folder = tmp_path_factory.mktemp("gpu")
    models = folder / "models"
    parser = build_parser(models / "parser")
    flat: dict[str, Any] = {"kind": "embedding", "tree": False, "max_tokens": 20_000}
    build_bundle(models, parser, name="tiny-flat", int8=True, **flat)
    build_bundle(models, parser, name="tiny-sst2", int8=True)
    paths = filter(None, [str(ROOT / "tests/device"), os.getenv("PYTHONPATH")])
    env = {
        **driver,
        "CUDA_CALLS": str(folder / "calls"),
        "CUDA_MEMORY": str(int(PROCESSES * MEMORY / SHARE)),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    flags = {"port": "0", "models": str(models), "processes": str(PROCESSES), "log-format": "text"}
    with closing(Process(folder / "log", flags, env)) as process:
        process.ready()
        yield process


def callers(calls: Path) -> set[int]:
    """The processes that have called CUDA."""
    return set(map(int, calls.read_text().split())) if calls.exists() else set()


def test_every_process_calls_cuda_after_its_fork_and_their_parent_never(gpu: Process) -> None:
    calls = Path(gpu.env["CUDA_CALLS"])
    info = httpx.get(gpu.url() + "/info", timeout=PATIENCE).json()
    assert (info["device"], info["provider"]) == ("cuda", "CUDAExecutionProvider")
    assert set(info["precision"].values()) == {"float32"}
    assert 'provider="CUDAExecutionProvider"' in httpx.get(gpu.url() + "/metrics").text
    assert gpu.log.count("ready: tiny-flat, tiny-sst2 on CUDAExecutionProvider") == PROCESSES
    first = set(gpu.servers())
    assert len(first) == PROCESSES
    assert first < callers(calls)
    os.kill(min(first), signal.SIGKILL)

    def replaced() -> bool | None:
        servers = set(gpu.servers())
        return (len(servers) == PROCESSES and first != servers <= callers(calls)) or None

    wait_for(replaced, "a process in its place that has called CUDA")
    gpu.ready()
    assert gpu.popen.pid not in callers(calls)


def test_what_the_device_has_no_memory_for_is_answered_so(gpu: Process) -> None:
    """Full batches were tried at the start, so many texts at once are answered; one that is too long is refused."""
    with httpx.Client(base_url=gpu.ready(), timeout=PATIENCE) as client:

        def embed(inputs: str | list[str]) -> httpx.Response:
            return client.post("/embed", json={"inputs": inputs, "model": "tiny-flat"})

        texts = [" ".join(["good", "dog"] * (1 + i % 60)) for i in range(500)]
        many = embed(texts)
        assert many.status_code == 200
        refused = embed("good " * 16_000)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "out_of_memory")
        assert "send a shorter one" in refused.json()["error"]["message"]
        np.testing.assert_allclose(embed(texts[7]).json()[0], many.json()[7], atol=1e-5)
        assert client.get("/ready").is_success
    assert "fails on one token" not in gpu.log
    assert "Traceback" not in gpu.log


def test_a_driver_without_cuda_is_the_cpu_service(driver: dict[str, str], tmp_path: Path) -> None:
    with bundles(["ms-san-sst2", "disan-sst5"], BUNDLES) as models, ExitStack() as stack:
        flags = {"port": "0", "models": str(models), "processes": "2"}
        process = stack.enter_context(closing(Process(tmp_path / "log", flags, driver)))
        info = httpx.get(process.ready() + "/info", timeout=PATIENCE).json()
        assert (info["device"], info["provider"]) == ("cpu", "CPUExecutionProvider")
        assert set(info["precision"].values()) == {"int8"}
        assert len(process.servers()) == 2
        [line] = [line for line in process.log.splitlines() if "CUDA" in line]
        assert "models run on the CPU: CUDA does not come up (lib" in line
        assert "\x1b" not in process.log
        assert "Failed to load" not in process.log
        assert not {process.popen.pid, *process.servers()} & callers(Path(driver["CUDA_CALLS"]))


@pytest.mark.parametrize("there", [True, False])
def test_cuda_that_is_asked_for_and_does_not_come_up_ends_in_one_line(
    driver: dict[str, str], there: bool
) -> None:
    serve = ("-m", "heedful", "serve", "--device", "cuda", "--port", "0")
    ended = ran(sys.executable, *serve, cwd=ROOT, **(driver if there else {}))
    assert ended.returncode == 1
    (line,) = [line for line in ended.stderr.splitlines() if "listening" not in line]
    missing = "lib[a-zA-Z.0-9]+: cannot open" if there else "there is no NVIDIA driver"
    assert re.search(rf"device is cuda, but CUDA does not come up \(.*{missing}.*gpu extra", line)
