"""Time and memory of the exported DiSAN by length, compared with a pair-by-pair version.

    python -m benchmarks.disan_cost [--batch 32] [--dim 300] [--lengths 12 24 48 96]

Each case runs in a separate process on one thread: the peak of resident memory above the loaded
session, and the least processor time of three runs (so that other load on the machine counts less).
"""

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from rich.console import Console
from torch import Tensor

from heedful.export.onnx import encoder_graph
from heedful.models.disan import C, DirectionalAttention, DiSAN
from heedful.models.sentence import SentenceEncoder, word_table

WORDS = 1000


class PairByPair(DirectionalAttention):
    """Eq. (15) and (11) literally, over (B, L, L, D)."""

    def token2token(self, h: Tensor, mask: Tensor) -> Tensor:
        position = torch.arange(h.shape[1], device=h.device)
        allowed = self.may_attend(position[None, :], position[:, None])[None] & mask[:, None, :]
        keys, queries = self.attended(h), self.reference(h)
        scores = C * torch.tanh((keys[:, None] + queries[:, :, None]) / C)
        sees = allowed.any(-1, keepdim=True)[..., None]
        scores = scores.masked_fill(~(allowed[..., None] | ~sees), -torch.inf)
        attended: Tensor = (scores.softmax(2) * h[:, None]).sum(2) * sees[:, :, 0]
        return attended


def graph(dim: int, *, naive: bool) -> bytes:
    """Random weights from a seed, the same for both graphs."""
    torch.manual_seed(0)
    encoder = DiSAN(dim=dim)
    if naive:
        for block in encoder.blocks:
            block.__class__ = PairByPair
    table = word_table(torch.randn(WORDS, dim), frozen=True)
    return encoder_graph(SentenceEncoder(table, encoder))


def peak() -> float:
    """Largest resident memory since the last reset, in MB."""
    status = Path("/proc/self/status").read_text()
    return next(int(s.split()[1]) for s in status.splitlines() if s.startswith("VmHWM")) / 1024


def measure(path: Path, batch: int, length: int) -> tuple[float, float, float]:
    """Milliseconds, MB and the sum of the vectors, the same for both graphs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    ids = np.random.default_rng(0).integers(1, WORDS, (batch, length))
    feeds = {"ids": ids, "lengths": np.full(batch, length)}
    Path("/proc/self/clear_refs").write_text("5")
    before, times = peak(), []
    for _ in range(3):
        start = time.process_time()
        (vectors,) = session.run(None, feeds)
        times.append(time.process_time() - start)
    return min(times) * 1000, peak() - before, float(np.abs(vectors).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--lengths", type=int, nargs="+", default=[12, 24, 48, 96])
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    out = Console()
    out.print("graph    L      ms       MB   checksum")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("looped", "naive"):
            path = Path(folder) / f"{name}.onnx"
            path.write_bytes(graph(arguments.dim, naive=name == "naive"))
            for length in arguments.lengths:
                with context.Pool(1) as pool:
                    row = pool.apply(measure, (path, arguments.batch, length))
                out.print(f"{name:6} {length:4} {row[0]:8.1f} {row[1]:8.1f} {row[2]:10.4f}")


if __name__ == "__main__":
    main()
