"""The shipped encoders on a device: how near to the CPU's vectors, how fast, and in how much memory."""

import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.graphs import call_seconds, plain, runner
from benchmarks.records import Row
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.bundles.card import ENCODER
from heedful.runtime.device import Resolved
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import EncoderRunner, OrtSession
from heedful.text.batch import Sentence, collate

ALLOWED = 1e-4
"""How far a value of a vector may be from the CPU's, in float32."""
GROWTH = 64.0
"""MiB that a device's memory may grow by when shapes come again."""
LENGTH = 24
PARITY = f"""Largest difference of a value of a vector in float32 from the CPU's, for batches of 1 to 64 sentences of 1
word to the most that the model reads. At most {ALLOWED:g}."""
RATES = f"""Sentences a second in float32, without a parse, by batch size; all sentences have {LENGTH} words. Input and
output are copied to and from the device for every batch, as the service does. Medians of rounds."""
MEMORY = f"""Memory in use, in MiB, after each shape of full batches was seen once, and after many more in any order: at
most {GROWTH:.0f} more."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is measured; smaller for a rehearsal."""

    batches: Sequence[int] = (1, 32, 256, 1024)
    seconds: float = 0.3
    rounds: int = 3
    shapes: int = 500
    step: int = 5
    """Of the lengths of memory's shapes."""


def parity(folder: Path, names: Sequence[str], device: Resolved) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        bundle = read(folder / name)
        there, here = OrtSession(bundle.files[ENCODER], device, 1), plain(bundle, 1)
        differences = []
        for size, length in ((1, 1), (7, 5), (64, LENGTH), (3, bundle.card.max_tokens)):
            feeds = encoder_feeds(bundle.card, collate(_sentences(bundle, size, length)))
            differences.append(float(np.abs(there.run(feeds) - here.run(feeds)).max()))
        worst = max(differences)
        rows.append(
            {"model": name, "on": there.provider, "largest": worst, "allowed": worst <= ALLOWED}
        )
    return rows


def rates(folder: Path, names: Sequence[str], device: Resolved, sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        bundle = read(folder / name)
        session = OrtSession(bundle.files[ENCODER], device, 1)
        case = runner(bundle, session)
        cases = [case(size, LENGTH) for size in sizes.batches]
        times = call_seconds(cases, sizes.rounds, sizes.seconds)
        cells = {f"batch {n}": n / each for n, each in zip(sizes.batches, times, strict=True)}
        rows.append({"model": name, "on": session.provider, **cells})
    return rows


def memory(folder: Path, name: str, device: Resolved, sizes: Sizes) -> list[Row]:
    """Raises OutOfMemory where the memory does not hold a full batch."""
    bundle = read(folder / name)
    encoder = EncoderRunner(bundle.card, OrtSession(bundle.files[ENCODER], device, 1))
    lengths = np.arange(1, bundle.card.max_tokens + 1, sizes.step)

    def run(length: int) -> None:
        [cost] = encoder.costs(_sentences(bundle, 1, length))
        size = max(1, encoder.budget // cost)
        encoder.run(encoder.prepare(_sentences(bundle, size, length)))

    for length in lengths:
        run(int(length))
    before = _used(device)
    for length in np.random.default_rng(0).choice(lengths, sizes.shapes):
        run(int(length))
    after = _used(device)
    row: dict[str, str | float | bool] = {
        "model": name,
        "shapes": str(len(lengths)),
        "each once": before,
        "after": after,
    }
    return [{**row, "allowed": after <= before + GROWTH}]


def _sentences(bundle: Bundle, size: int, length: int) -> list[Sentence]:
    """Random words whose tree is a chain."""
    rng = np.random.default_rng(length)
    heads = np.maximum(np.arange(length) - 1, 0)
    rows = rng.integers(2, len(bundle.vocab), (size, length))
    return [Sentence(row, heads) for row in rows]


def _used(device: Resolved) -> float:
    """MiB in use: of the first GPU by everything that runs there, of a CPU by this process."""
    if device == "cpu":
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
