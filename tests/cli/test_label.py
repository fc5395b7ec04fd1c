"""`heedful label`: a teacher's vectors of a task's texts, each read once, in parts that outlive a stop."""

from pathlib import Path

import numpy as np
import pytest

from heedful.cli import label
from heedful.text.arrays import Floats
from heedful.training import tasks, teacher_vectors
from heedful.training.tasks.base import Example, Source, Task

TEXTS = [f"text {i}" for i in range(7)]


def vector(text: str) -> Floats:
    return np.full(teacher_vectors.SIZE, float(text.split()[1]), np.float32)


def test_a_stopped_command_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Source("toy", "CC0-1.0", "", lambda _: [Example((one,), 0) for one in TEXTS])
    task = Task("toy", "embedding", (), (source,), source, source)
    monkeypatch.setitem(tasks.TASKS, "toy", task)
    monkeypatch.setattr(label, "CACHE", tmp_path)
    monkeypatch.setattr(teacher_vectors, "PART", 3)
    read: list[str] = []

    def encode(teacher: str, texts: list[str], device: str) -> Floats:
        if len(read) == 3 and "stopped" not in read:
            read.append("stopped")
            raise KeyboardInterrupt
        read.extend(texts)
        return np.array([vector(one) for one in texts])

    monkeypatch.setattr(teacher_vectors, "_encode", encode)
    with pytest.raises(KeyboardInterrupt):
        label.command("toy", data=tmp_path)
    label.command("toy", data=tmp_path)
    assert sorted(read) == ["stopped", *TEXTS], "no text is read twice"
    assert capsys.readouterr().out.splitlines()[-1] == "7 of 7 texts"
    read.clear()
    found = teacher_vectors.stored_vectors("minilm", TEXTS, tmp_path, "cpu")
    np.testing.assert_array_equal(found, [vector(one) for one in TEXTS])
    assert read == []
