"""Files that appear whole or not at all, whoever else writes them."""

from pathlib import Path

import pytest

from heedful.text.atomic import write_file


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
