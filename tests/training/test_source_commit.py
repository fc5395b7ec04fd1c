"""The commit that a record names."""

import re
import subprocess
from pathlib import Path

import pytest

from heedful.training import source_commit


def test_a_run_outside_a_repository_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert source_commit.source_commit() == ""


def test_a_changed_source_is_dirty_and_a_changed_record_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, record = tmp_path / "training" / "source_commit.py", tmp_path / "results" / "run.json"
    for file in (source, record):
        file.parent.mkdir()
        file.write_text("before")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *arguments], check=True)
    monkeypatch.setattr(source_commit, "__file__", str(source))
    record.write_text("after")
    commit = source_commit.source_commit()
    assert re.fullmatch(r"[0-9a-f]{12}", commit)
    source.write_text("after")
    assert source_commit.source_commit() == f"{commit}-dirty"
