"""Configurations of runs: what is read and refused; the commit that a record names."""

import re
import subprocess
from pathlib import Path

import pytest

from heedful.training import config, source_commit, tasks
from heedful.training.errors import ConfigError
from tests.writing import put

FILES = sorted(Path("configs").rglob("*.toml"))
GOOD = 'task = "sst2"\nlicence = "MIT"\n[encoder]\nname = "ms-san"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "[optimiser]\nrat = 1\n", r"run\.toml: optimiser\.rat: .*: leave it out, or corr"),
        (GOOD + "[words]\nsubword_rows = 1025\n", r"words\.subword_rows: give 0, or at least 1026"),
        (GOOD + "[words]\nsubword_rows = 3_000_000_000\n", r"run\.toml: words\.subword_rows: "),
        (GOOD.replace("MIT", ""), r"run\.toml: licence: "),
        ("seed = 4294967296\n" + GOOD, r"run\.toml: seed: .* less than 4294967296"),
        ("seed = ", "not TOML"),
        ("[encoder]\nname = 'ms-san'\n", "task"),
        ("alpha = nan\n" + GOOD, r"run\.toml: alpha: .* finite number"),
        (GOOD + "[encoder.config]\ndropout = nan\n", r"run\.toml: encoder\.config\.dropout"),
        (GOOD.replace("ms-san", "bert"), r"run\.toml: encoder\.name: no encoder 'bert': known are"),
        ("freeze = ['encoder']\n" + GOOD, r"run\.toml: freeze: encoder needs init_from, the run"),
        ("freeze = ['pieces']\n" + GOOD, r"run\.toml: freeze: this run has no pieces: name words"),
        (GOOD.replace("ms-san", "cross-encoder"), r"run\.toml: a cross-encoder needs the section"),
        (GOOD + "[encoder.config]\nheads = 3\n", r"run\.toml: encoder\.config: 3 heads over"),
    ],
)
def test_a_wrong_file_is_named_with_its_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.read(put(tmp_path, "run.toml", text))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration"):
        config.read(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"cannot read the configuration .*: Is a directory"):
        config.read(tmp_path)


@pytest.mark.parametrize(
    ("encoder", "task", "head", "expected"),
    [
        ("lama", "r8", "[head]\nhidden = 7\n", (7, 0.4)),
        ("dsa", "sst2", "[head]\n", (300, 0.4)),
        ("disan", "snli", "", (300, 0.25)),
        ("disan", "sick-relatedness", "", (50, 0.0)),
        ("ms-san", "snli", "[head]\ndropout = 0.2\n", (300, 0.2)),
    ],
)
def test_a_head_that_is_left_out_is_the_papers(
    tmp_path: Path, encoder: str, task: str, head: str, expected: tuple[int, float]
) -> None:
    text = GOOD.replace("sst2", task).replace("ms-san", encoder) + head
    run = config.read(put(tmp_path, "run.toml", text))
    assert (run.head.hidden, run.head.dropout) == expected
    assert run.encoder_keywords() == {"dim": 300, "max_tokens": 256}
    assert config.validate(run.model_dump(mode="json"), Path("run.json")) == run


@pytest.mark.parametrize("file", FILES, ids=str)
def test_every_published_configuration_can_be_read_and_names_tasks(file: Path) -> None:
    run = config.read(file)
    labels = {tasks.get(name).labels for name in (run.task, *run.extra_dev_tasks)}
    assert len(labels) == 1


def committed(folder: Path, name: str) -> Path:
    """A file of a new commit in `folder`."""
    file = put(folder, name, "before")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *arguments], check=True)
    return file


def test_a_changed_source_is_dirty_a_changed_record_is_not_and_elsewhere_is_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, record = (
        committed(tmp_path, name) for name in ("training/source_commit.py", "results/run.json")
    )
    monkeypatch.setattr(source_commit, "__file__", str(source))
    record.write_text("after")
    commit = source_commit.source_commit()
    assert re.fullmatch(r"[0-9a-f]{12}", commit)
    source.write_text("after")
    assert source_commit.source_commit() == f"{commit}-dirty"
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert source_commit.source_commit() == ""
