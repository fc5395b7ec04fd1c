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
from heedful.text.vocab import Vocab
from heedful.training import checkpoint, loop, tasks
from heedful.training.config import EncoderConfig, OptimiserConfig, Paths, RunConfig
from heedful.training.data import Examples
from heedful.training.errors import ConfigError, DataError, RunDamaged
from heedful.training.model import make_model
from heedful.training.start import begin_with
from tests.builders import BuiltParser


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


def test_a_log_says_how_far_the_epoch_is(
    config: RunConfig, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = quiet()
    loop.train(config, paths, resume=False, console=console)
    assert isinstance(console.file, io.StringIO)
    assert "of epoch" not in console.file.getvalue()  # these epochs take less than a minute
    monkeypatch.setattr(loop, "SILENT_SECONDS", 0.0)
    other = replace(paths, run=paths.run / "other")
    loop.train(config, other, resume=False, console=console)
    lines = console.file.getvalue().splitlines()
    assert "0% of epoch 1" in lines
    assert f"0% of epoch {config.epochs}" in lines


class InterruptedInEpoch(Console):
    """A user who presses Ctrl-C when the line of the epoch before is about to be printed."""

    def __init__(self, epoch: int) -> None:
        super().__init__(file=io.StringIO())
        self.last = f"epoch {epoch - 1}:"

    def print(self, *objects: Any, **options: Any) -> None:
        if str(objects[0]).startswith(self.last):
            raise KeyboardInterrupt
        super().print(*objects, **options)


def test_a_resumed_run_is_the_unbroken_run(config: RunConfig, paths: Paths, tmp_path: Path) -> None:
    loop.train(config, paths, resume=False, console=quiet())
    whole = checkpoint.load(paths.run / checkpoint.LAST)

    broken = replace(paths, run=tmp_path / "broken")
    with pytest.raises(KeyboardInterrupt):
        loop.train(config, broken, resume=False, console=InterruptedInEpoch(3))
    log = (broken.run / checkpoint.LOG).read_text().splitlines()
    assert len(log) == 2
    loop.train(config, broken, resume=True, console=quiet())
    resumed = checkpoint.load(broken.run / checkpoint.LAST)
    assert resumed["progress"] == whole["progress"]
    for part in ("model", "average"):
        for name, value in whole[part].items():
            assert torch.equal(value, resumed[part][name]), name


def test_a_loss_that_is_not_finite_stops_the_run(config: RunConfig, paths: Paths) -> None:
    wild = config.optimiser.model_copy(update={"rate": 1e20})
    console = quiet()
    with pytest.raises(
        ConfigError, match=r"toml: the loss is nan in epoch \d: lower optimiser\.rate"
    ):
        loop.train(
            config.model_copy(update={"optimiser": wild}), paths, resume=False, console=console
        )
    assert isinstance(console.file, io.StringIO)
    assert "loss nan" not in console.file.getvalue()
    assert not (paths.run / checkpoint.RECORD).exists()


def test_resuming_a_finished_run_keeps_its_record(config: RunConfig, paths: Paths) -> None:
    short = config.model_copy(update={"epochs": 1})
    record = loop.train(short, paths, resume=False, console=quiet())
    earlier = json.dumps({**record, "commit": "of the day it was trained"})
    (paths.run / checkpoint.RECORD).write_text(earlier)
    again = loop.train(short, paths, resume=True, console=quiet())
    assert again["commit"] == "of the day it was trained"
    assert (paths.run / checkpoint.RECORD).read_text() == earlier


def test_the_best_weights_are_those_that_were_scored(config: RunConfig, paths: Paths) -> None:
    loop.train(config.model_copy(update={"epochs": 1}), paths, resume=False, console=quiet())
    best = checkpoint.load(paths.run / checkpoint.BEST)
    last = checkpoint.load(paths.run / checkpoint.LAST)
    assert best
    for name, value in best.items():
        assert torch.equal(value, last["average"][f"module.{name}"]), name
    assert not all(torch.equal(value, last["model"][name]) for name, value in best.items())


def test_the_order_of_examples_follows_from_seed_and_epoch(
    config: RunConfig, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def orders(seed: int) -> list[list[int]]:
        """The ids of the words of each epoch's sentences, as they come."""
        found: list[list[int]] = []
        batches = Examples.batches

        def noting(self: Examples, size: int, rng: Any, *more: Any, **options: Any) -> Any:
            each = list(batches(self, size, rng, *more, **options))
            if rng is not None:  # of an epoch, not of the dev score
                found.append([int(i) for sides, _ in each for i in sides[0].ids.flatten()])
            return iter(each)

        with monkeypatch.context() as patched:
            patched.setattr(Examples, "batches", noting)
            run = replace(paths, run=paths.run / str(len(list(paths.run.glob("*")))))
            short = config.model_copy(update={"epochs": 2, "seed": seed})
            loop.train(short, run, resume=False, console=quiet())
        return found

    one, again, other = orders(1), orders(1), orders(2)
    assert len(one) == 2
    assert one == again
    assert one[0] != one[1]
    assert one[0] != other[0]
    assert one[1] != other[1]


def test_learns_in_bfloat16_too(config: RunConfig, paths: Paths) -> None:
    optimiser = config.optimiser.model_copy(update={"precision": "bfloat16"})
    half = config.model_copy(update={"optimiser": optimiser, "epochs": 12, "patience": 12})
    record = loop.train(half, paths, resume=False, console=quiet())
    assert record["dev"]["value"] == 1.0
    best = checkpoint.load(paths.run / checkpoint.BEST)
    assert {value.dtype for value in best.values() if value.is_floating_point()} == {torch.float32}


def test_a_frozen_encoder_keeps_its_weights_and_its_words(
    config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    loop.train(config, paths, resume=False, console=quiet())
    frozen = {
        "init_from": paths.run,
        "freeze": ("words", "encoder"),
        "words": config.words.model_copy(update={"background_min_count": None}),
    }
    again = replace(paths, run=tmp_path / "again")
    loop.train(config.model_copy(update=frozen), again, resume=False, console=quiet())
    before, after = (checkpoint.load(one.run / checkpoint.BEST) for one in (paths, again))
    changed = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"head"}
    words, kept = ((one.run / checkpoint.VOCAB).read_bytes() for one in (paths, again))
    assert kept == words


def test_a_run_begins_with_another_runs_weights(
    config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    def refused(message: str, **changes: Any) -> None:
        config_ = config.model_copy(update={"init_from": paths.run, "epochs": 1, **changes})
        with pytest.raises(ConfigError, match=message):
            loop.train(config_, replace(paths, run=tmp_path / "no"), resume=False, console=quiet())

    refused("train it first")
    paths.run.mkdir()
    (paths.run / checkpoint.RECORD).write_text('{"config": {"kind": "teacher"}, "labels": []}')
    (paths.run / checkpoint.BEST).touch()
    refused("init_from: .* is the run of a teacher")
    shutil.rmtree(paths.run)
    first = loop.train(
        config.model_copy(update={"epochs": 12, "patience": 12}),
        paths,
        resume=False,
        console=quiet(),
    )
    still = config.optimiser.model_copy(update={"rate": 1e-9, "word_lr": 1e-9})
    again = config.model_copy(update={"init_from": paths.run, "epochs": 1, "optimiser": still})
    second = loop.train(again, replace(paths, run=tmp_path / "two"), resume=False, console=quiet())
    assert second["dev"]["value"] == first["dev"]["value"] == 1.0
    assert export.read(tmp_path / "two").training.start == paths.run.as_posix()
    assert second["data"] == first["data"]  # each set of examples once
    refused("another model", head=config.head.model_copy(update={"hidden": 7}))
    task = tasks.get(config.task)
    wider = replace(task, labels=(*task.labels, "more"))
    lent = replace(paths, run=tmp_path / "lent")
    loop.train(again, lent, resume=False, console=quiet(), task=wider)
    mine, theirs = (checkpoint.load(one.run / checkpoint.BEST) for one in (paths, lent))
    fewer_rows = again.model_copy(update={"train_rows": 4})
    small = loop.train(
        fewer_rows, replace(paths, run=tmp_path / "few"), resume=False, console=quiet()
    )
    assert [one["rows"] for one in small["data"]] == [4, first["data"][0]["rows"]]
    for name, value in theirs.items():
        if name.startswith("sentence."):
            torch.testing.assert_close(value, mine[name])
    embedding = make_model(
        config, "embedding", 0, torch.zeros_like(mine["sentence.embedding.weight"])
    )
    own = {name: value.clone() for name, value in embedding.state_dict().items()}
    begin_with(again, embedding, tasks.get("embed"), paths.run / checkpoint.VOCAB)
    for name, value in embedding.state_dict().items():
        projection = name.startswith("sentence.projection.")
        torch.testing.assert_close(value, own[name] if projection else mine[name])
    fewer = {"words": config.words.model_copy(update={"background_min_count": None})}
    other = replace(paths, run=tmp_path / "three")
    loop.train(again.model_copy(update=fewer), other, resume=False, console=quiet())
    (old, before), (new, after) = (
        (
            Vocab.load(run / checkpoint.VOCAB).words,
            checkpoint.load(run / checkpoint.BEST)["sentence.embedding.weight"],
        )
        for run in (paths.run, other.run)
    )
    assert 3 < len(new) < len(old)
    for row, word in enumerate(new):
        torch.testing.assert_close(after[row], before[old.index(word)])


@pytest.mark.parametrize(("encoder", "parsed"), [("ms-san", 2), ("average", 0)])
def test_only_an_encoder_of_trees_has_its_texts_parsed(
    config: RunConfig, paths: Paths, tmp_path: Path, encoder: str, parsed: int
) -> None:
    """Train and dev texts have trees where the encoder reads them; background texts never have."""
    short = config.model_copy(update={"epochs": 1, "encoder": EncoderConfig(name=encoder)})
    own = replace(paths, cache=tmp_path / "parses")
    loop.train(short, own, resume=False, console=quiet())
    with_trees = []
    for file in own.cache.glob("*.npz"):
        with np.load(file) as archive:
            places = np.concatenate([np.arange(length) for length in archive["lengths"]])
            with_trees.append(bool((archive["heads"] != places).any()))
    assert (len(with_trees), sum(with_trees)) == (3, parsed)


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
    frozen = config.model_copy(update={"freeze": ("words",), "epochs": 2})
    loop.train(frozen, paths, resume=False, console=quiet())
    first = checkpoint.load(paths.run / checkpoint.BEST)["sentence.embedding.weight"]
    other = Paths(paths.run.with_name("other"), paths.data, paths.parser, paths.cache, paths.config)
    loop.train(frozen.model_copy(update={"epochs": 4}), other, resume=False, console=quiet())
    second = checkpoint.load(other.run / checkpoint.LAST)["model"]["sentence.embedding.weight"]
    np.testing.assert_array_equal(first.numpy(), second.numpy())


def with_optimiser(config: RunConfig, epochs: int, **fields: object) -> RunConfig:
    optimiser = config.optimiser.model_copy(update=fields)
    return config.model_copy(update={"optimiser": optimiser, "epochs": epochs, "patience": epochs})


def losses(paths: Paths) -> list[float]:
    log = (paths.run / checkpoint.LOG).read_text().splitlines()
    return [json.loads(line)["loss"] for line in log]


@pytest.mark.parametrize(
    ("name", "rate", "keeps"),
    [
        ("adam", 0.01, "exp_avg_sq"),
        ("sgd", 0.05, "momentum_buffer"),
    ],
)
def test_the_papers_optimisers_learn(
    config: RunConfig, paths: Paths, name: str, rate: float, keeps: str
) -> None:
    config = with_optimiser(config, 6, name=name, rate=rate, schedule="constant")
    loop.train(config, paths, resume=False, console=quiet())
    first, *_, last = losses(paths)
    assert last < first
    layers, words = (checkpoint.load(paths.run / checkpoint.LAST)[f"optimiser{i}"] for i in (0, 1))
    assert keeps in layers["state"][0]
    assert layers["param_groups"][0]["lr"] == rate
    assert "exp_avg_sq" in words["state"][0]  # Adam, whatever the layers have


def test_the_rate_is_halved_when_the_loss_stalls(config: RunConfig, paths: Paths) -> None:
    config = with_optimiser(config, 8, name="sgd", rate=4.0, schedule="halve", warmup=0.0)
    loop.train(config, paths, resume=False, console=quiet())
    found = losses(paths)
    stalls = sum(loss >= min(found[:i]) for i, loss in enumerate(found) if i)
    assert stalls
    state = checkpoint.load(paths.run / checkpoint.LAST)
    assert state["schedule0"]["base_lrs"] == [4.0 / 2**stalls]
    assert state["schedule1"]["base_lrs"] == [config.optimiser.word_lr / 2**stalls]


def test_batch_norm_meets_no_row_that_stands_alone(config: RunConfig, paths: Paths) -> None:
    """24 phrases in batches of 23."""
    config = with_optimiser(config, 1, batch=23)
    dsa = {"name": "dsa", "config": {"layers": 1, "size": 6}}
    config = RunConfig.model_validate({**config.model_dump(), "encoder": dsa})
    record = loop.train(config, paths, resume=False, console=quiet())
    assert [part["rows"] for part in record["data"]] == [24]


def test_a_run_without_git_has_no_commit(
    config: RunConfig, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    config = config.model_copy(update={"epochs": 1})
    assert loop.train(config, paths, resume=False, console=quiet())["commit"] == ""


def copied(run: Path, to: Path, *gone: str) -> Path:
    """A copy of a run's folder without some of its files."""
    shutil.copytree(run, to)
    for name in gone:
        (to / name).unlink()
    return to


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_finished_run_without_its_last_checkpoint_is_not_overwritten(
    config: RunConfig, paths: Paths
) -> None:
    short = config.model_copy(update={"epochs": 1})
    record = loop.train(short, paths, resume=False, console=quiet())
    (paths.run / checkpoint.LAST).unlink()
    before = files(paths.run)
    with pytest.raises(ConfigError, match="already holds a run"):
        loop.train(short, paths, resume=False, console=quiet())
    again = loop.train(short, paths, resume=True, console=quiet())
    assert again == json.loads(json.dumps(record))
    assert files(paths.run) == before


def test_a_damaged_run_is_named_with_the_file(
    config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    short = config.model_copy(update={"epochs": 1})
    loop.train(short, paths, resume=False, console=quiet())
    whole = files(paths.run)
    halves = {name: content[: len(content) // 2] for name, content in whole.items()}
    for i, bad in enumerate((halves[checkpoint.LAST], b"", b"nothing")):
        broken = copied(paths.run, tmp_path / f"last{i}", checkpoint.RECORD)
        (broken / checkpoint.LAST).write_bytes(bad)
        with pytest.raises(RunDamaged, match=r"last\.pt is damaged: .*; remove it and train again"):
            loop.train(short, replace(paths, run=broken), resume=True, console=quiet())
    gone = copied(paths.run, tmp_path / "gone", checkpoint.RECORD, checkpoint.BEST)
    with pytest.raises(RunDamaged, match=r"gone holds no best\.pt"):
        loop.train(short, replace(paths, run=gone), resume=True, console=quiet())
    for name, bad in (
        (checkpoint.BEST, halves[checkpoint.BEST]),
        (checkpoint.RECORD, halves[checkpoint.RECORD]),
        (checkpoint.RECORD, b"{}"),
        (checkpoint.RECORD, b"\xff"),
        (checkpoint.VOCAB, b""),
        (checkpoint.VOCAB, b"\xff"),
        (checkpoint.VOCAB, whole[checkpoint.VOCAB] + b"one-more\n"),  # than best.pt has vectors
    ):
        (paths.run / name).write_bytes(bad)
        with pytest.raises(RunDamaged, match=name if b"one-more" not in bad else "best.pt is not"):
            export.read(paths.run)
        (paths.run / name).write_bytes(whole[name])
    (paths.run / checkpoint.SCORES).write_bytes(b"[{")
    with pytest.raises(RunDamaged, match=r"scores\.json is damaged: .*; remove it and evaluate"):
        export.read(paths.run)


def test_a_resumed_run_keeps_its_words_and_its_parser(
    config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        loop.train(config, paths, resume=False, console=InterruptedInEpoch(3))
    (paths.run / ".last.pt-0123abcd").write_bytes(b"of a run that was killed")
    words = (paths.run / checkpoint.VOCAB).read_bytes()
    data = shutil.copytree(paths.data, tmp_path / "data")
    with (data / "trees/train.txt").open("a") as file:
        file.write("(4 (2 (2 a) (2 movie)) (4 (2 is) (4 thin)))\n" * 2)
    with pytest.raises(ConfigError, match=r"vocab\.txt lists other words .* same --data"):
        loop.train(config, replace(paths, data=data), resume=True, console=quiet())
    assert (paths.run / checkpoint.VOCAB).read_bytes() == words
    state = checkpoint.load(paths.run / checkpoint.LAST)
    checkpoint.save(paths.run / checkpoint.LAST, state | {"parser": "another"})
    with pytest.raises(ConfigError, match=r"another parser .*: name that one with --parser"):
        loop.train(config, paths, resume=True, console=quiet())
    checkpoint.save(paths.run / checkpoint.LAST, state)
    loop.train(config, paths, resume=True, console=quiet())
    assert not list(paths.run.glob(".*"))


def test_a_folder_that_is_a_file_is_named(config: RunConfig, paths: Paths, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for run in (tmp_path / "file", tmp_path / "file/run"):
        with pytest.raises(ConfigError, match=r"--run: .* is a file or lies in one"):
            loop.train(config, replace(paths, run=run), resume=False, console=quiet())


def test_a_full_disk_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's own error says nothing of the disk."""
    part = tmp_path / "full"
    part.symlink_to("/dev/full")
    monkeypatch.setattr(Path, "with_name", lambda *_: part)  # where the file is written first
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(tmp_path / "last.pt", {"weights": torch.zeros(100_000)})
    assert not (tmp_path / "last.pt").exists()


def test_a_split_without_an_example_is_named(
    config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    data = shutil.copytree(paths.data, tmp_path / "data")
    (data / "trees/dev.txt").write_text("(2 (2 a) (2 movie))\n")  # neutral, which sst2 leaves out
    with pytest.raises(DataError, match="sst2: its dev split has no example"):
        loop.train(config, replace(paths, data=data), resume=False, console=quiet())


@pytest.mark.parametrize("few", [{"optimiser": OptimiserConfig(batch=1)}, {"train_rows": 1}])
def test_batch_norm_with_one_example_at_a_time_is_refused(
    config: RunConfig, paths: Paths, few: dict[str, Any]
) -> None:
    dsa = {"encoder": EncoderConfig(name="dsa"), "epochs": 1}
    with pytest.raises(ConfigError, match=r"optimiser\.batch to 2 or more"):
        loop.train(config.model_copy(update=dsa | few), paths, resume=False, console=quiet())


@pytest.mark.parametrize("hidden", [10**13, 10**18])
def test_sizes_that_no_memory_holds_are_refused(
    hidden: int, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for .cache
    file = tmp_path / "large.toml"
    file.write_text(
        'task = "sst2"\nlicence = "CC0-1.0"\n[encoder]\nname = "average"\n[words]\ndim = 12\n'
        f"[head]\nhidden = {hidden}\n"
    )
    with pytest.raises(ConfigError, match=r"large\.toml: this needs more memory than there is"):
        command(file, run=paths.run, data=paths.data, parser=paths.parser)
