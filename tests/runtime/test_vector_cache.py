"""Vectors of sentences that were encoded lately are kept, within bounds, and equal sentences are encoded once."""

import numpy as np

from heedful.runtime.engine.cache import VectorCache
from heedful.runtime.engine.work import encode, run_now
from heedful.runtime.observer import Observer
from tests.runtime.conftest import Running


class Watcher(Observer):
    def __init__(self) -> None:
        self.counts: list[tuple[int, int]] = []

    def cache(self, name: str, hits: int, misses: int) -> None:
        assert name == "vector"
        self.counts.append((hits, misses))


def key(number: int) -> tuple[str, float | None, bytes]:
    return "version", None, str(number).encode()


def test_the_least_recently_used_go_first() -> None:
    watcher = Watcher()
    cache = VectorCache(2, watcher)
    for number in (1, 2):
        cache.put(key(number), np.full(3, number, np.float32))
    assert cache.get([key(1), key(3)]).keys() == {key(1)}
    cache.put(key(3), np.zeros(3, np.float32))
    assert cache.get([key(1), key(2), key(3)]).keys() == {key(1), key(3)}
    assert watcher.counts == [(1, 1), (2, 1)]


def test_bytes_are_bounded_and_a_vector_does_not_keep_its_batch() -> None:
    cache = VectorCache(1000, Observer(), limit=10_000)
    for number, vector in enumerate(np.ones((50, 100), np.float32)):
        cache.put(key(number), vector)
    assert 0 < cache.bytes <= 10_000
    assert 0 < len(cache) < 20
    assert all(vector.base is None for vector in cache.get([key(49)]).values())
    cache.put(key(50), np.ones(10_000, np.float32))  # larger than the limit
    assert key(50) not in cache.get([key(50)])


def test_equal_sentences_are_encoded_once(running: Running) -> None:
    model = running.service.registry.models["tiny-sst2"]
    sentences = [model.vocab.sentence(["dog"], np.arange(1))] * 5
    for cache in (None, VectorCache(10, Observer())):
        work = next(encode(model.encoder, sentences, cache))
        assert work is not None
        assert len(work.items) == 1
        vectors = run_now(encode(model.encoder, sentences, cache)).vectors
        assert vectors.shape == (5, model.card.width)
        assert len(np.unique(vectors, axis=0)) == 1
