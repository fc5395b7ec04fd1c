import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from tests.builders import BuiltParser
from training import checkpoint, loop
from training.config import RunConfig
from training.errors import ConfigError
from training.loop import Paths


def quiet() -> Console:
    return Console(file=io.StringIO())


def test_learns_and_records(config: RunConfig, paths: Paths, pipeline: BuiltParser) -> None:
    config = config.model_copy(update={"epochs": 12, "patience": 12})
    record = loop.train(config, paths, resume=False, console=quiet())
    assert record["dev"]["value"] == 1.0
    assert record["dev"]["rows"] == 8
    assert record["parser"]["fingerprint"] == pipeline.fingerprint
    assert json.loads((paths.run / checkpoint.RECORD).read_text()) == json.loads(json.dumps(record))
    log = [json.loads(line) for line in (paths.run / checkpoint.LOG).read_text().splitlines()]
    assert log[-1]["loss"] < log[0]["loss"] / 2
    assert "thin" in (paths.run / checkpoint.VOCAB).read_text().split()  # of the background texts


def test_a_resumed_run_is_the_unbroken_run(
    config: RunConfig, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop.train(config, paths, resume=False, console=quiet())
    whole = checkpoint.load(paths.run / checkpoint.LAST)

    broken = Paths(tmp_path / "broken", paths.data, paths.parser, paths.cache, paths.config)
    epochs = iter(range(100))
    train_epoch = loop._epoch

    def fails_in_its_third(*args: object) -> float:
        if next(epochs) == 2:
            raise KeyboardInterrupt
        return train_epoch(*args)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(loop, "_epoch", fails_in_its_third)
    with pytest.raises(KeyboardInterrupt):
        loop.train(config, broken, resume=False, console=quiet())
    loop.train(config, broken, resume=True, console=quiet())
    resumed = checkpoint.load(broken.run / checkpoint.LAST)
    assert resumed["progress"] == whole["progress"]
    for part in ("model", "average"):
        for name, value in whole[part].items():
            assert torch.equal(value, resumed[part][name]), name


def test_a_run_is_not_overwritten(config: RunConfig, paths: Paths) -> None:
    short = config.model_copy(update={"epochs": 1})
    loop.train(short, paths, resume=False, console=quiet())
    with pytest.raises(ConfigError, match="--resume"):
        loop.train(short, paths, resume=False, console=quiet())
    with pytest.raises(ConfigError, match="another configuration"):
        loop.train(config, paths, resume=True, console=quiet())


def test_patience_ends_a_run(config: RunConfig, paths: Paths) -> None:
    patient = config.model_copy(update={"epochs": 50, "patience": 2})
    record = loop.train(patient, paths, resume=False, console=quiet())
    progress = checkpoint.load(paths.run / checkpoint.LAST)["progress"]
    assert progress["epoch"] == record["epochs"] + 2 < 50


def test_frozen_vectors_stay(config: RunConfig, paths: Paths) -> None:
    words = config.words.model_copy(update={"frozen": True})
    frozen = config.model_copy(update={"words": words, "epochs": 2})
    loop.train(frozen, paths, resume=False, console=quiet())
    first = checkpoint.load(paths.run / checkpoint.BEST)["sentence.embedding.weight"]
    other = Paths(paths.run.with_name("other"), paths.data, paths.parser, paths.cache, paths.config)
    loop.train(frozen.model_copy(update={"epochs": 4}), other, resume=False, console=quiet())
    second = checkpoint.load(other.run / checkpoint.LAST)["model"]["sentence.embedding.weight"]
    np.testing.assert_array_equal(first.numpy(), second.numpy())
