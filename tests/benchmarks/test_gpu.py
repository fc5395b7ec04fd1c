"""The check of a GPU, rehearsed on the CPU: all of it but the service and the training, which take a minute."""

from benchmarks.gpu import encoders
from benchmarks.gpu.__main__ import QUICK
from tests.shipped import BUNDLES


def test_encoders_are_measured() -> None:
    (parity,) = encoders.parity(BUNDLES, ["lama-r8"], "cpu")
    assert (parity["on"], parity["largest"], parity["allowed"]) == ("CPUExecutionProvider", 0, True)
    (rates,) = encoders.rates(BUNDLES, ["lama-r8"], "cpu", QUICK)
    assert all(rates[f"batch {size}"] for size in QUICK.batches)
    (memory,) = encoders.memory(BUNDLES, "lama-r8", "cpu", QUICK)
    assert memory["shapes"] == "4"
