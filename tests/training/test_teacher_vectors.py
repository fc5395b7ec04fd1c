"""Targets of two teachers: the second's geometry in the first's axes."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from heedful.text.arrays import Floats
from heedful.training import teacher_vectors
from heedful.training.errors import ConfigError, DataMissing

TEXTS = [f"text {i}" for i in range(800)]


def unit(vectors: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def drawn(rows: int, size: int, seed: int = 1) -> Floats:
    return unit(np.random.default_rng(seed).standard_normal((rows, size)).astype(np.float32))


def test_a_rotation_of_the_axes_is_turned_back() -> None:
    axes = drawn(200, 6)
    turn, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((6, 6)))
    wider = np.hstack([axes @ turn.astype(np.float32), np.zeros((200, 4), np.float32)])
    assert_allclose(teacher_vectors.rotated(wider, axes), axes, atol=1e-5)


def test_a_rotation_keeps_the_cosines_of_what_fits_into_the_axes() -> None:
    low = drawn(100, 5) @ drawn(5, 12, 3)  # of rank 5, in 12 dimensions
    turned = teacher_vectors.rotated(low, drawn(100, 5, 4))
    assert_allclose(turned @ turned.T, low @ low.T, atol=1e-5)


def test_two_teachers_are_halfway_between_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = drawn(len(TEXTS), 384)
    second = unit(np.hstack([first + 0.02 * drawn(len(TEXTS), 384, 5), drawn(len(TEXTS), 384, 6)]))
    table = {"minilm": first, "mpnet": second}

    def encode(teacher: str, texts: list[str], device: str) -> Floats:
        return table[teacher][list(map(TEXTS.index, texts))]

    monkeypatch.setattr(teacher_vectors, "_encode", encode)
    both = teacher_vectors.targets(["minilm", "mpnet"], TEXTS, tmp_path, "cpu").astype(np.float32)
    assert_allclose(np.linalg.norm(both, axis=1), 1, atol=1e-3)
    turned = teacher_vectors.rotated(second, first)
    assert_allclose(both, unit(first + turned), atol=1e-3)
    alone = teacher_vectors.targets(["minilm"], TEXTS, tmp_path, "cpu")
    assert_allclose(alone, first, atol=1e-3)


def test_an_unknown_teacher_and_one_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="'bert' is none of minilm, mpnet"):
        teacher_vectors.stored_vectors("bert", TEXTS, tmp_path, "cpu")
    monkeypatch.setattr("heedful.training.mpnet.FOLDER", tmp_path / "nowhere")
    with pytest.raises(DataMissing, match="scripts/models/all-mpnet-base-v2"):
        teacher_vectors.stored_vectors("mpnet", TEXTS[:1], tmp_path, "cpu")
