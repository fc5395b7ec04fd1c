"""ONNX Runtime in a process: it returns memory, and sends no telemetry."""

import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from heedful.runtime.engine.session import OrtSession
from heedful.text.batch import Sentence, collate
from tests.builders import word_table
from tests.graphs import encoder_graph
from tests.process import output

LARGE = (128, 256)
"""Sentences and words of the large batch."""
LARGEST = 128 * 256 * 512 * 4
"""Bytes of one tensor (B, L, D) of several: an arena keeps four."""


def memory_after_batches(path: Path) -> list[int]:
    """Bytes that this process holds after a small batch, a large one, and a small one again."""
    session = OrtSession(path.read_bytes(), "cpu", 1)
    sizes = []
    for size, length in ((1, 1), LARGE, (1, 1)):
        batch = collate([Sentence(np.full(length, 3), np.arange(length))] * size)
        feeds = {"ids": batch.ids, "lengths": batch.lengths, "heads": batch.heads}
        session.run({**feeds, "alpha": np.array(1.5, np.float32)})
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        sizes.append(pages * resource.getpagesize())
    return sizes


def test_the_memory_of_a_large_batch_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "wide.onnx"
    path.write_bytes(encoder_graph(word_table(dimension=512), tree=True))
    # In a new process: what other tests have freed changes when glibc gives memory back.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        before, _, after = pool.submit(memory_after_batches, path).result()
    assert after - before < LARGEST


SHOW = """
import os
import heedful.text.graph
print(len(os.listdir("/proc/self/task")))
"""


def test_importing_heedful_turns_telemetry_off(tmp_path: Path) -> None:
    """ONNX Runtime neither starts its telemetry thread nor keeps events in the user's cache."""
    command = ("env", "-u", "ORT_DISABLE_TELEMETRY", "-u", "XDG_CACHE_HOME", sys.executable)
    assert output(*command, "-c", SHOW, HOME=str(tmp_path), OMP_NUM_THREADS="1") == "1\n"
    assert not list(tmp_path.rglob("onnxruntime.db"))
