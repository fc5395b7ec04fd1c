import asyncio
import resource
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from heedful.runtime.engine.session import Device, OrtSession, SessionThreads, gpus
from heedful.runtime.errors import InferenceFailed, ProviderError, Unavailable
from heedful.text.batch import Sentence, collate
from heedful.text.graph import CPU
from tests.builders import encoder_graph, expected_embedding, word_table

pytestmark = pytest.mark.anyio

without_gpu = pytest.mark.skipif(gpus() > 0, reason="says what happens without a GPU")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "encoder.onnx"
    path.write_bytes(encoder_graph(word_table(), tree=True))
    return path


def feeds(sentences: list[Sentence]) -> dict[str, np.ndarray]:
    batch = collate(sentences)
    alpha = np.array(1.5, np.float32)
    return {"ids": batch.ids, "lengths": batch.lengths, "heads": batch.heads, "alpha": alpha}


def test_it_gives_what_the_graph_computes(graph: Path) -> None:
    sentences = [
        Sentence(np.array([4, 5, 6]), np.array([1, 1, 1])),
        Sentence(np.array([9]), np.array([0])),
    ]
    output = OrtSession(graph, "cpu", 1).run(feeds(sentences))
    expected = [expected_embedding(sentence) for sentence in sentences]
    np.testing.assert_allclose(output, expected, atol=1e-6)


@without_gpu
def test_cuda_where_there_is_none_is_an_error(graph: Path) -> None:
    with pytest.raises(ProviderError, match=r"device is cuda, but .* runs on CPUExecutionProvider"):
        OrtSession(graph, "cuda", 1)


@without_gpu
@pytest.mark.parametrize("device", sorted(set(get_args(Device)) - {"cuda"}))
def test_the_provider_in_use_is_told_and_nothing_is_printed(graph: Path, device: str) -> None:
    program = (
        "import sys; from pathlib import Path; from heedful.runtime.engine.session import OrtSession\n"
        "sys.stdout.write(OrtSession(Path(sys.argv[1]), sys.argv[2], 1).provider)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(graph), device],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == (CPU, "")


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


async def test_the_thread_gives_the_output_and_the_seconds(graph: Path) -> None:
    thread = SessionThreads()
    session = OrtSession(graph, "cpu", 1)
    output, seconds = await thread.run(session, feeds([Sentence(np.array([4]), np.array([0]))]))
    assert output.shape == (1, 8)
    assert seconds > 0
    await thread.stop()
    with pytest.raises(Unavailable):
        await thread.run(session, {})


async def test_a_failing_run_is_one_error_without_the_cause_in_its_message(
    graph: Path, caplog: pytest.LogCaptureFixture
) -> None:
    thread = SessionThreads()
    broken = feeds([Sentence(np.array([10_000]), np.array([0]))])  # an id beyond the word table
    with pytest.raises(InferenceFailed, match=r"^the model failed on this input$"):
        await thread.run(OrtSession(graph, "cpu", 1), broken)
    assert "indices element out of data bounds" in caplog.text
    await thread.stop()


async def test_a_run_that_never_ends_is_told_and_not_waited_for(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = SessionThreads()
    session = OrtSession(graph, "cpu", 1)
    began, end = threading.Event(), threading.Event()

    class Hanging:
        provider = CPU

        def run(self, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
            began.set()
            end.wait()
            return session.run(feeds)

    monkeypatch.setattr("heedful.runtime.engine.session.STUCK_SECONDS", 0.0)
    assert not thread.stuck
    one = feeds([Sentence(np.array([4]), np.array([0]))])
    run = asyncio.create_task(thread.run(Hanging(), one))
    await asyncio.to_thread(began.wait)
    assert thread.stuck
    await thread.stop()
    assert not run.done()
    end.set()
    await run
    assert not thread.stuck
