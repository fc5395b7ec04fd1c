"""`python -m tools label`: the vectors of a task's texts, by any sentence encoder."""

from pathlib import Path

import numpy as np
import pytest

from heedful.training import tasks, teacher_vectors, teachers
from heedful.training.tasks.base import Example, Source, Task
from tests.transformer import tiny_encoder
from tools import label

TEXTS = ["two kids", "a dog is good", "their hands"]


def test_every_text_has_a_vector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Source("toy", "CC0-1.0", "", lambda _: [Example((one,), 0) for one in TEXTS])
    monkeypatch.setitem(tasks.TASKS, "toy", Task("toy", "embedding", (), (source,), source, source))
    monkeypatch.setattr(label, "CACHE", tmp_path / "cache")
    name = str(tiny_encoder(tmp_path / "encoder", 16))
    label.command("toy", name, data=tmp_path)
    assert capsys.readouterr().out.splitlines()[-1] == "3 of 3 texts"
    left: list[int] = []
    found = teacher_vectors.stored_vectors(name, TEXTS, tmp_path / "cache", "cpu", left.append)
    assert left == [0]
    expected = teachers.load(name, half=True).unit_vectors(TEXTS)
    np.testing.assert_allclose(found, expected, atol=0.02)
