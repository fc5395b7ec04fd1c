import resource
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from heedful.runtime.engine.session import OrtSession
from heedful.text.batch import Sentence, collate
from tests.builders import word_table
from tests.graphs import encoder_graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "encoder.onnx"
    path.write_bytes(encoder_graph(word_table(), tree=True))
    return path


def feeds(sentences: list[Sentence]) -> dict[str, np.ndarray]:
    batch = collate(sentences)
    alpha = np.array(1.5, np.float32)
    return {"ids": batch.ids, "lengths": batch.lengths, "heads": batch.heads, "alpha": alpha}


LARGE = (128, 256)
"""Sentences and words of the large batch."""
LARGEST = 128 * 256 * 512 * 4
"""Bytes of one tensor (B, L, D) of several: an arena keeps four."""


def memory_after_batches(path: Path) -> list[int]:
    """Bytes that this process holds after a small batch, a large one, and a small one again."""
    session = OrtSession(path, "cpu", 1)
    held = []
    for size, length in ((1, 1), LARGE, (1, 1)):
        session.run(feeds([Sentence(np.full(length, 3), np.arange(length))] * size))
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        held.append(pages * resource.getpagesize())
    return held


def test_the_memory_of_a_large_batch_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "wide.onnx"
    path.write_bytes(encoder_graph(word_table(dimension=512), tree=True))
    # In a new process: what other tests have freed changes when glibc gives memory back.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        before, _, after = pool.submit(memory_after_batches, path).result()
    assert after - before < LARGEST
