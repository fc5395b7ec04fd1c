"""What needs a GPU: `make gpu-check`. Without one, every test here is skipped."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.graphs import plain
from heedful.runtime.bundles.bundle import read
from heedful.runtime.device import resolve
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.batch import Sentence, collate
from heedful.text.graph import CUDA

BUNDLES = Path("bundles")
NAMES = sorted(card.parent.name for card in BUNDLES.glob("*/card.json"))
pytestmark = pytest.mark.skipif(resolve("auto") == "cpu", reason="needs a GPU (docs/gpu.md)")


def used_mib() -> int:
    """Memory of the first device in use, by everything that runs there."""
    asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    return int(subprocess.run(asked, capture_output=True, check=True, text=True).stdout)


def batch(words: int, size: int, length: int) -> list[Sentence]:
    rng = np.random.default_rng(length)
    heads = np.maximum(np.arange(length) - 1, 0)
    return [Sentence(row, heads) for row in rng.integers(2, words, (size, length))]


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_the_cpus(name: str) -> None:
    bundle = read(BUNDLES / name)
    served = LoadedModel(bundle, "cuda", 1)
    assert served.encoder.session.provider == CUDA
    exact = plain(bundle, 1)
    for size, length in ((1, 1), (7, 5), (64, 24), (3, bundle.card.max_tokens)):
        feeds = encoder_feeds(bundle.card, collate(batch(len(bundle.vocab), size, length)))
        np.testing.assert_allclose(served.encoder.session.run(feeds), exact.run(feeds), atol=1e-4)


def test_memory_is_bounded_under_mixed_shapes() -> None:
    """After every shape was seen once, seeing them again in any order takes no more."""
    bundle = read(BUNDLES / "ms-san-embed")
    served = LoadedModel(bundle, "cuda", 1)
    lengths = np.arange(1, bundle.card.max_tokens + 1, 5)
    rng = np.random.default_rng(0)

    def run(length: int) -> None:
        [sentence] = batch(len(bundle.vocab), 1, length)
        size = max(1, served.encoder.budget // served.encoder.costs([sentence])[0])
        sentences = batch(len(bundle.vocab), size, length)
        served.encoder.session.run(encoder_feeds(bundle.card, collate(sentences)))

    for length in lengths:
        run(int(length))
    before = used_mib()
    for length in rng.choice(lengths, 500):
        run(int(length))
    assert used_mib() <= before + 64
