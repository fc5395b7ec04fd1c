"""One run: what it learns and keeps, how it continues, what it refuses."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from heedful.cli.train import command
from heedful.export import run as export
from heedful.text.kinds import Kind
from heedful.training import checkpoint, loop, tasks
from heedful.training.config import Paths, RunConfig
from heedful.training.errors import ConfigError, RunDamaged, RunMissing
from heedful.training.model import make_model
from heedful.training.start import load_initial_weights
from heedful.training.tasks.base import Task
from tests.builders import BuiltParser
from tests.training.conftest import changed, train


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / checkpoint.LOG).read_text().splitlines()]


def last(run: Path) -> dict[str, Any]:
    return checkpoint.load(run / checkpoint.LAST)


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def copied(run: Path, to: Path, *gone: str) -> Path:
    """A copy of a run's folder without some of its files."""
    shutil.copytree(run, to)
    for name in gone:
        (to / name).unlink()
    return to


def test_learns_and_records(finished: Paths, pipeline: BuiltParser) -> None:
    record = json.loads((finished.run / checkpoint.RECORD).read_text())
    assert (record["dev"]["value"], record["dev"]["rows"]) == (1.0, 8)
    assert record["parser"]["fingerprint"] == pipeline.fingerprint
    found = losses(finished.run)
    assert found[-1] < found[0] / 2
    words = (finished.run / checkpoint.VOCAB).read_text().split()
    assert "thin" in words  # of the background texts
    average = last(finished.run)["average"]  # the averaged weights were scored
    for name, value in checkpoint.best(finished.run).items():
        assert value.shape == average[f"module.{name}"].shape


class Interrupted(Console):
    """A user who presses Ctrl-C when a line that starts so is about to be printed."""

    def __init__(self, line: str) -> None:
        super().__init__(file=io.StringIO())
        self.stop_at = line

    def print(self, *objects: Any, **options: Any) -> None:
        if str(objects[0]).startswith(self.stop_at):
            raise KeyboardInterrupt
        super().print(*objects, **options)


@pytest.mark.parametrize("line", ["epoch 2:", "33% of epoch 3", "67% of epoch 1"])
def test_a_resumed_run_is_the_unbroken_run(
    config: RunConfig, finished: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """It goes on after an epoch, or after a step of one, with the same dropout."""
    monkeypatch.setattr(loop, "PROGRESS_SECONDS", -1.0)  # a line before each step
    broken = replace(finished, run=tmp_path / "broken")
    with pytest.raises(KeyboardInterrupt):
        train(config, broken, console=Interrupted(line), checkpoint_seconds=-1.0)
    assert last(broken.run)["progress"]["step"] == {"e": 0, "3": 1, "6": 2}[line[0]]
    train(config, broken, resume=True)
    expected, found = last(finished.run), last(broken.run)
    assert found["progress"] == expected["progress"]
    for part in ("model", "average"):
        for name, value in expected[part].items():
            assert torch.equal(value, found[part][name]), name
    np.testing.assert_allclose(losses(broken.run), losses(finished.run), rtol=1e-12)


def test_another_seed_is_another_run(config: RunConfig, finished: Paths, tmp_path: Path) -> None:
    other = replace(finished, run=tmp_path / "other")
    train(changed(config, seed=2), other)
    assert losses(other.run) != losses(finished.run)


def test_a_loss_that_is_not_finite_stops_the_run(config: RunConfig, paths: Paths) -> None:
    with pytest.raises(ConfigError, match=r"the loss is nan in epoch \d: lower optimiser\.rate"):
        train(changed(config, optimiser={"rate": 1e20}), paths)
    assert not (paths.run / checkpoint.RECORD).exists()


@pytest.mark.parametrize("gone", [(), (checkpoint.LAST,)])
def test_a_finished_run_is_neither_overwritten_nor_changed(
    config: RunConfig, finished: Paths, tmp_path: Path, gone: tuple[str, ...]
) -> None:
    mine = replace(finished, run=copied(finished.run, tmp_path / "copy", *gone))
    record = checkpoint.record(finished.run) | {"commit": "of the day it was trained"}
    (mine.run / checkpoint.RECORD).write_text(json.dumps(record))
    before = files(mine.run)
    with pytest.raises(ConfigError, match="already holds a run: --resume continues it"):
        train(config, mine)
    with pytest.raises(ConfigError, match="another configuration"):
        train(changed(config, epochs=1), mine, resume=True)
    assert train(config, mine, resume=True)["commit"] == "of the day it was trained"
    assert files(mine.run) == before


@pytest.mark.parametrize(
    ("freeze", "moved"),
    [(("words", "encoder"), {"head"}), (("words",), {"head", "sentence.encoder"})],
)
def test_what_is_frozen_keeps_its_weights(
    config: RunConfig, finished: Paths, tmp_path: Path, freeze: tuple[str, ...], moved: set[str]
) -> None:
    again = replace(finished, run=tmp_path / "again")
    words = config.words.model_dump() | {"background_min_count": None}
    train(changed(config, init_from=finished.run, freeze=freeze, words=words), again)
    before, after = checkpoint.best(finished.run), checkpoint.best(again.run)
    found = {name for name in before if not torch.equal(before[name], after[name])}
    assert {name[: 16 if name.startswith("s") else 4] for name in found} == moved
    kept, listed = ((one.run / checkpoint.VOCAB).read_bytes() for one in (again, finished))
    assert kept == listed


def test_a_run_begins_with_another_runs_weights(
    config: RunConfig, finished: Paths, tmp_path: Path
) -> None:
    still = {"rate": 1e-9, "word_lr": 1e-9}
    again = changed(config, init_from=finished.run, epochs=1, optimiser=still)
    first = checkpoint.record(finished.run)
    record = train(again, replace(finished, run=tmp_path / "two"))
    assert record["dev"]["value"] == first["dev"]["value"] == 1.0
    assert record["data"] == first["data"]  # each set of examples once
    assert export.read(tmp_path / "two").training.start == finished.run.as_posix()

    task, mine = tasks.get(config.task), checkpoint.best(finished.run)
    table = mine["sentence.embedding.weight"]
    others: list[tuple[Kind, Task]] = [
        ("classification", replace(task, labels=(*task.labels, "more"))),
        ("embedding", tasks.get("embed")),
    ]
    for kind, other in others:  # which take the encoder, and neither the head nor the projection
        model = make_model(config, kind, len(other.labels), torch.zeros_like(table))
        own = {name: value.clone() for name, value in model.state_dict().items()}
        load_initial_weights(again, model, other, finished.run / checkpoint.VOCAB)
        for name, value in model.state_dict().items():
            taken = name.startswith(("sentence.encoder.", "sentence.embedding."))
            torch.testing.assert_close(value, mine[name] if taken else own[name])


def test_a_run_that_cannot_be_begun_with_is_named(
    config: RunConfig, finished: Paths, tmp_path: Path
) -> None:
    for start, hidden, message in (
        (tmp_path / "none", 8, "init_from: .*train it first"),
        (finished.run, 7, "init_from: .* holds another model"),
    ):
        wrong = changed(config, init_from=start, head={"hidden": hidden})
        with pytest.raises(ConfigError, match=message):
            train(wrong, replace(finished, run=tmp_path / start.name / str(hidden)))


def test_patience_ends_a_run(config: RunConfig, paths: Paths) -> None:
    record = train(changed(config, epochs=50, patience=2), paths)
    assert last(paths.run)["progress"]["epoch"] == record["epochs"] + 2 < 50


@pytest.mark.parametrize(
    "optimiser",
    [{"name": "adamw"}, {"name": "sgd", "rate": 0.05}, {"precision": "bfloat16"}],
    ids=str,
)
def test_every_optimiser_learns_and_keeps_floats(
    config: RunConfig, paths: Paths, optimiser: dict[str, Any]
) -> None:
    train(changed(config, optimiser=optimiser), paths)
    found = losses(paths.run)
    assert found[-1] < found[0]
    words = last(paths.run)["optimiser1"]
    assert "exp_avg_sq" in words["state"][0]  # Adam, whatever the layers have
    weights = checkpoint.best(paths.run).values()
    assert {one.dtype for one in weights if one.is_floating_point()} == {torch.float32}


def test_the_rate_is_halved_when_the_loss_stalls(config: RunConfig, paths: Paths) -> None:
    halving = {"name": "sgd", "rate": 4.0, "schedule": "halve", "warmup": 0.0}
    train(changed(config, optimiser=halving, epochs=8), paths)
    found = losses(paths.run)
    stalls = sum(loss >= min(found[:i]) for i, loss in enumerate(found) if i)
    assert stalls
    rates = [last(paths.run)[f"schedule{i}"]["base_lrs"] for i in (0, 1)]
    assert rates == [[4.0 / 2**stalls], [config.optimiser.word_lr / 2**stalls]]


def test_batch_norm_meets_no_row_that_stands_alone(config: RunConfig, paths: Paths) -> None:
    """24 phrases in batches of 23; batches of one, and one row, are refused."""
    dsa = {"name": "dsa", "config": {"layers": 1, "size": 6}}
    run = changed(config, encoder=dsa, epochs=1, optimiser={"batch": 23})
    assert [part["rows"] for part in train(run, paths)["data"]] == [24]
    other = replace(paths, run=paths.run / "other")
    for few in (changed(run, optimiser={"batch": 1}), changed(run, train_rows=1)):
        with pytest.raises(ConfigError, match=r"optimiser\.batch to 2 or more"):
            train(few, other)
        shutil.rmtree(other.run)


def test_a_damaged_run_and_one_that_lacks_a_file_are_named_with_it(
    config: RunConfig, finished: Paths, tmp_path: Path
) -> None:
    content = files(finished.run)
    halves = {name: one[: len(one) // 2] for name, one in content.items()}
    broken = copied(finished.run, tmp_path / "last", checkpoint.RECORD)
    for bad in (halves[checkpoint.LAST], b""):
        (broken / checkpoint.LAST).write_bytes(bad)
        with pytest.raises(RunDamaged, match=r"last\.pt is damaged: .*; remove it and train again"):
            train(config, replace(finished, run=broken), resume=True)
    gone = copied(finished.run, tmp_path / "gone", checkpoint.RECORD, checkpoint.BEST)
    with pytest.raises(RunDamaged, match=r"gone holds no best"):
        train(config, replace(finished, run=gone), resume=True)
    run = copied(finished.run, tmp_path / "run")
    more = content[checkpoint.VOCAB] + b"one-more\n"  # than the best has vectors
    for name, bad, said in (
        (checkpoint.BEST, halves[checkpoint.BEST], checkpoint.BEST),
        *((checkpoint.RECORD, bad, checkpoint.RECORD) for bad in (b"{}", b"\xff")),
        (checkpoint.VOCAB, b"\xff", checkpoint.VOCAB),
        (checkpoint.VOCAB, more, f"{checkpoint.BEST} is not"),
        (checkpoint.SCORES, b"[{", r"scores\.json is .*; remove it and evaluate"),
    ):
        (run / name).write_bytes(bad)
        with pytest.raises(RunDamaged, match=said):
            export.read(run)
        (run / name).write_bytes(content.get(name, b""))
    for name in (checkpoint.RECORD, checkpoint.BEST, checkpoint.VOCAB):
        (run / name).unlink()
        with pytest.raises(RunMissing, match=name):
            export.read(run)
        (run / name).write_bytes(content[name])


def test_a_resumed_run_keeps_its_words_and_its_parser(
    config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(config, paths, console=Interrupted("epoch 2:"))
    (paths.run / ".last.pt-0123abcd").write_bytes(b"of a run that was killed")
    words = (paths.run / checkpoint.VOCAB).read_bytes()
    data = shutil.copytree(paths.data, tmp_path / "data")
    with (data / "trees/train.txt").open("a") as file:
        file.write("(4 (2 (2 a) (2 movie)) (4 (2 is) (4 thin)))\n" * 2)
    with pytest.raises(ConfigError, match=r"vocab\.txt lists other words .* same --data"):
        train(config, replace(paths, data=data), resume=True)
    assert (paths.run / checkpoint.VOCAB).read_bytes() == words
    checkpoint.save(paths.run / checkpoint.LAST, last(paths.run) | {"parser": "another"})
    with pytest.raises(ConfigError, match=r"another parser than .*: use that one"):
        train(config, paths, resume=True)
    assert not list(paths.run.glob(".*"))


def test_a_full_disk_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's own error says nothing of the disk."""
    part = tmp_path / "full"
    part.symlink_to("/dev/full")
    monkeypatch.setattr(Path, "with_name", lambda *_: part)  # where the file is written first
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(tmp_path / "last.pt", {"weights": torch.zeros(100_000)})
    assert not (tmp_path / "last.pt").exists()


def test_sizes_that_no_memory_holds_are_refused(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for .cache
    file = tmp_path / "large.toml"
    file.write_text(
        'task = "sst2"\nlicence = "CC0-1.0"\n[encoder]\nname = "average"\n[words]\ndim = 12\n'
        f"[head]\nhidden = {10**13}\n"
    )
    with pytest.raises(ConfigError, match=r"large\.toml: this needs more memory than there is"):
        command(file, run=paths.run, data=paths.data, parser=str(paths.parser))
