"""The check of a GPU, rehearsed on the CPU: all of it but the service and the training, which take a minute."""

import subprocess

import pytest
import typer

from benchmarks.gpu import encoders
from benchmarks.gpu.__main__ import BEGIN, END, PAGE, QUICK, inserted, main
from heedful.runtime.device import resolve
from tests.process import ROOT
from tests.shipped import BUNDLES


def test_encoders_are_measured() -> None:
    (parity,) = encoders.parity(BUNDLES, ["lama-r8"], "cpu")
    assert (parity["on"], parity["largest"], parity["allowed"]) == ("CPUExecutionProvider", 0, True)
    (rates,) = encoders.rates(BUNDLES, ["lama-r8"], "cpu", QUICK)
    assert all(rates[f"batch {size}"] for size in QUICK.batches)
    (memory,) = encoders.memory(BUNDLES, "lama-r8", "cpu", QUICK)
    assert memory["shapes"] == "4"


def test_the_page_takes_the_record_in_place_of_the_last_one() -> None:
    page = (ROOT / PAGE).read_text()
    once = inserted(page, "## Measured\n\n| a |\n")
    assert once.partition(BEGIN)[0] == page.partition(BEGIN)[0]
    assert once.partition(END)[2] == page.partition(END)[2]
    assert "## Measured\n\n| a |\n" in once
    assert inserted(once, "## Measured\n\n| a |\n") == once
    with pytest.raises(ValueError, match="does not hold"):
        inserted("# A page\n", "## Measured")


@pytest.mark.skipif(resolve("auto") == "cuda", reason="says what happens without a GPU")
def test_without_a_gpu_it_says_so_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        main()
    assert ended.value.exit_code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("no GPU is measured: device is cuda, but CUDA does not come up")
    ran = subprocess.run(
        ["make", "--silent", "gpu-check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode
    assert ran.stdout == "gpu-check: there is no NVIDIA GPU here (nvidia-smi finds none)\n"
