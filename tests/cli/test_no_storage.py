"""A disk that is full, or a path that cannot be written, ends a command with one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from heedful.cli import main
from tests.process import PATIENCE, ROOT


def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "heedful", "list", "--json"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    assert ended.returncode != 0
    assert ended.stderr.startswith(b"heedful: [Errno 28] No space left on device")
    assert b"Traceback" not in ended.stderr


def test_a_folder_that_cannot_be_made_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "texts.txt").write_text("A dog barks.\n")
    for out in ("texts.txt/vectors.npy", "texts.txt/two/vectors.npy", "x" * 300 + ".npy"):
        texts = str(tmp_path / "texts.txt")
        arguments = ["heedful", "embed", texts, "--out", str(tmp_path / out)]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(
            SystemExit, match=r"heedful: (\[Errno \d+\]|cannot write) .*(texts\.txt|xxx)"
        ):
            main.main()


@pytest.mark.parametrize(
    ("closed", "arguments", "said"),
    [
        ("stdin", "embed - --model tiny-flat --out v.npy", "input is closed: name a file"),
        ("stdin", "predict - --model tiny-sst2 --out p.csv", "input is closed: name a file"),
        ("stdout", "embed t.txt --model tiny-flat --out -", "output is closed: set --out"),
        ("stdout", "predict t.txt --model tiny-sst2 --out -", "output is closed: set --out"),
    ],
)
def test_a_stream_that_is_closed_is_one_line(
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    closed: str,
    arguments: str,
    said: str,
) -> None:
    (tmp_path / "t.txt").write_text("A dog barks.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["heedful", *arguments.split(), "--models", str(models)])
    monkeypatch.setattr(sys, closed, None)  # as Python starts with its descriptor closed
    with pytest.raises(SystemExit, match=said):
        main.main()
    assert [file.name for file in tmp_path.iterdir()] == ["t.txt"]
