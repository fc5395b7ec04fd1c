"""Files that appear whole or not at all, whoever else writes them."""

import sys
from pathlib import Path

import pytest

from heedful.files.atomic import remove_parts, replace_folder, write_file
from tests.process import ran

KILLED = """
import os, signal, sys
from pathlib import Path
from heedful.files.atomic import write_file

path = Path(sys.argv[1])
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "before the rename":
    write_file(path, lambda part: (part.write_text("half"), kill()))
rename = Path.replace
Path.replace = lambda *names: (rename(*names), kill())
write_file(path, lambda part: part.write_text("new"))
"""


def test_two_that_write_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "cache.npz"

    def first(part: Path) -> None:
        with part.open("w") as out:
            out.write("first, ")
            out.flush()
            write_file(path, lambda other: other.write_text("second"))
            assert path.read_text() == "second"
            out.write("whole")

    write_file(path, first)
    assert path.read_text() == "first, whole"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")

    def fail(part: Path) -> None:
        part.write_text("half of the ne")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    def fill(_: Path) -> None:
        Path("/dev/full").write_text("new")

    with pytest.raises(OSError, match=r"No space left on device: '.*/file'$"):
        write_file(tmp_path / "file", fill)
    full = pytest.raises(OSError, match=r"No space left on device: '.*/folder'$")
    with full, replace_folder(tmp_path / "folder") as new:
        fill(new)
    with pytest.raises(FileNotFoundError, match=r"'absent'$"):
        write_file(tmp_path / "file", lambda _: Path("absent").read_text())
    with pytest.raises(FileNotFoundError, match=r"'.*/no/file'$"):
        write_file(tmp_path / "no" / "file", lambda part: part.write_text("new"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("moment", "content", "left"), [("before the rename", "old", 2), ("after the rename", "new", 1)]
)
def test_what_a_kill_leaves(moment: str, content: str, left: int, tmp_path: Path) -> None:
    path = tmp_path / "state [1].json"
    path.write_text("old")
    other = tmp_path / ".state [1].json-mine"
    assert ran(sys.executable, "-c", KILLED, path, moment).returncode == -9
    assert path.read_text() == content
    assert len(list(tmp_path.iterdir())) == left
    other.touch()
    remove_parts(path)
    assert set(tmp_path.iterdir()) == {path, other}
