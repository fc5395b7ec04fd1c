"""The check of a GPU, rehearsed on the CPU: all of it but the service and the training, which take a minute."""

import pytest
import typer

from benchmarks.gpu import encoders
from benchmarks.gpu.__main__ import QUICK, main
from heedful.runtime.device import resolve
from tests.shipped import BUNDLES


def test_encoders_are_measured() -> None:
    (parity,) = encoders.parity(BUNDLES, ["lama-r8"], "cpu")
    assert (parity["on"], parity["largest"], parity["allowed"]) == ("CPUExecutionProvider", 0, True)
    (rates,) = encoders.rates(BUNDLES, ["lama-r8"], "cpu", QUICK)
    assert all(rates[f"batch {size}"] for size in QUICK.batches)
    (memory,) = encoders.memory(BUNDLES, "lama-r8", "cpu", QUICK)
    assert memory["shapes"] == "4"


@pytest.mark.skipif(resolve("auto") == "cuda", reason="says what happens without a GPU")
def test_without_a_gpu_it_says_so_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        main()
    assert ended.value.exit_code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("no GPU is measured: device is cuda, but CUDA does not come up")
