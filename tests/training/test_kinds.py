"""Kinds other than classes, trained from files to a record, and handed to export."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.export import run
from heedful.training import checkpoint, tasks, teacher_vectors
from heedful.training.config import DistillationConfig, Paths, RunConfig
from heedful.training.tasks.base import Example, Source, Task
from tests.training.conftest import BAD, GOOD, train


def dev_scores(config: RunConfig, paths: Paths) -> list[float]:
    """By epoch."""
    train(config, paths)
    log = (paths.run / checkpoint.LOG).read_text().splitlines()
    return [json.loads(line)["dev"] for line in log]


def of_task(config: RunConfig, task: str, epochs: int) -> RunConfig:
    return config.model_copy(update={"task": task, "epochs": epochs, "patience": epochs})


def test_relatedness_is_learned(config: RunConfig, paths: Paths, tmp_path: Path) -> None:
    """Two good words or two bad ones are alike."""
    rows = [
        (a, b, 4.6 if (a in GOOD) == (b in GOOD) else 1.4)
        for a in (*GOOD, *BAD)
        for b in (*GOOD, *BAD)
    ]
    heading = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    table = heading + "".join(f"1\tis {a}\tis {b}\t{y}\tNEUTRAL\n" for a, b, y in rows)
    for file in ("SICK_train.txt", "SICK_trial.txt"):
        (tmp_path / file).write_text(table)
    (tmp_path / "vectors").symlink_to(paths.data / "vectors")
    own = Paths(paths.run, tmp_path, paths.parser, paths.cache, paths.config)
    words = config.words.model_copy(update={"background_min_count": None})  # SNLI is not there
    config = config.model_copy(update={"words": words})
    trained = of_task(config, "sick-relatedness", 12)
    scores = dev_scores(trained, own)
    assert scores[-1] > 0.9
    recorded = run.read(paths.run)
    assert (recorded.kind, recorded.labels) == ("relatedness", ())
    assert RunConfig.model_validate(recorded.training.settings) == trained
    (dev,) = recorded.scores
    assert (dev.dataset, dev.metric, dev.value) == ("sick", "pearson", max(scores))
    assert recorded.head is not None


def test_embeddings_follow_their_teacher(
    config: RunConfig, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The teacher has good words on one axis, bad ones on another."""
    texts = [f"is {word}" for word in (*GOOD, *BAD)]
    table = np.eye(384, dtype=np.float32)[[0] * len(GOOD) + [1] * len(BAD)]
    file = tmp_path / "teacher.npy"
    np.save(file, table)
    teacher_vectors.keep(str(file), texts, table, paths.cache)
    taught = DistillationConfig(teachers=(str(file),))
    config = config.model_copy(update={"distillation": taught})
    pairs = [Example((a, b), float(x @ y)) for a, x in zip(texts, table, strict=True)
             for b, y in zip(texts, table, strict=True) if a != b]  # fmt: skip
    task = Task(
        name="toy-embed",
        kind="embedding",
        labels=(),
        train=(Source("toy", "CC0-1.0", "", lambda _: [Example((t,), 0) for t in texts]),),
        dev=Source("toy", "CC0-1.0", "", lambda _: pairs),
        test=Source("toy", "CC0-1.0", "", lambda _: pairs),
    )
    monkeypatch.setitem(tasks.TASKS, task.name, task)
    scores = dev_scores(of_task(config, task.name, 30), paths)
    assert scores[-1] > 0.8 > scores[0]
    recorded = run.read(paths.run)
    assert (recorded.kind, recorded.head) == ("embedding", None)
    assert recorded.scores[0].metric == "spearman"
    weights = checkpoint.best(paths.run)
    assert weights["sentence.projection.weight"].shape[0] == 384
    torch.testing.assert_close(
        recorded.model.embedding.weight, weights["sentence.embedding.weight"]
    )
