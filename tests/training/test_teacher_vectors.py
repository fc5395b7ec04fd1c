"""Vectors of teachers: read once for each text, in parts that outlive a stop; two teachers' in the first's axes."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from heedful.text.arrays import Floats
from heedful.training import teacher_vectors, teachers
from heedful.training.errors import DataMissing
from heedful.training.teachers import unit
from tests.builders import random_texts
from tests.transformer import tiny_encoder

TEXTS = list(dict.fromkeys(random_texts(20)))


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


def test_two_teachers_are_halfway_between_both(tmp_path: Path) -> None:
    first = drawn(len(TEXTS), 8)
    second = unit(np.hstack([first + 0.02 * drawn(len(TEXTS), 8, 5), drawn(len(TEXTS), 4, 6)]))
    files = [str(tmp_path / "first.npy"), str(tmp_path / "second.npy")]
    for file, vectors in zip(files, (3 * first, second), strict=True):
        np.save(file, vectors)
        teacher_vectors.keep(file, TEXTS, np.load(file), tmp_path)
    both = teacher_vectors.targets(files, TEXTS, tmp_path, "cpu").astype(np.float32)
    turned = teacher_vectors.rotated(second, first)
    assert_allclose(both, unit(first + turned), atol=2e-3)
    alone = teacher_vectors.targets(files[:1], TEXTS, tmp_path, "cpu")
    assert_allclose(alone, first, atol=1e-3)


def test_a_file_of_vectors_has_no_other_text(tmp_path: Path) -> None:
    file = str(tmp_path / "api.npy")
    np.save(file, drawn(2, 8))
    teacher_vectors.keep(file, ["a", "b"], np.load(file), tmp_path)
    with pytest.raises(DataMissing, match=r"api\.npy has no vector of the text 'c'"):
        teacher_vectors.stored_vectors(file, ["a", "c"], tmp_path, "cpu")


def test_a_stopped_run_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teacher_vectors, "PART", 4)
    name, cache = str(tiny_encoder(tmp_path / "encoder", 16)), tmp_path / "cache"
    left: list[int] = []

    def stop(count: int) -> None:
        left.append(count)
        if len(left) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        teacher_vectors.stored_vectors(name, TEXTS, cache, "cpu", stop)
    left.clear()
    twice = [*TEXTS, *TEXTS[:3]]
    found = teacher_vectors.stored_vectors(name, twice, cache, "cpu", left.append)
    assert left[0] == len(TEXTS) - 8, "two parts of four texts were stored"
    assert left[-1] == 0
    expected = teachers.load(name, half=True).unit_vectors(TEXTS)
    assert_allclose(found[: len(TEXTS)], expected, atol=0.02)
    np.testing.assert_array_equal(found[len(TEXTS) :], found[:3])
    left.clear()
    again = teacher_vectors.stored_vectors(name, twice, cache, "cpu", left.append)
    np.testing.assert_array_equal(again, found)
    assert left == [0]
