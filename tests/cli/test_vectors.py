"""Files of vectors are complete or absent, and resume from wherever a kill left them."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from heedful.cli.errors import CommandError
from heedful.cli.texts import Row
from heedful.cli.vector_formats import Vectors
from heedful.cli.vectors import VectorFile
from tests.cli.test_predict import read

MADE_FROM = {"model": "tiny 0123", "normalize": True}
TEXTS = [f"text {i}" for i in range(12)]
ROWS = [Row(text, i, f"id {i}") for i, text in enumerate(TEXTS)]
VECTORS: Vectors = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)


def write(out: Path, start: int, stop: int, *, resume: bool = False, finish: bool = True) -> None:
    """Chunks of three from `start` to `stop`."""
    with VectorFile(out, MADE_FROM, 5, resume=resume) as file:
        if file.resumed:
            file.skip(ROWS[: file.resumed["rows"]])
            assert file.rows == start
        for i in range(start, stop, 3):
            file.append(ROWS[i : i + 3], VECTORS[i : i + 3])
        if finish:
            file.finish(ids=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_no_text_gives_no_row_and_a_skipped_one_none_or_nan(tmp_path: Path) -> None:
    for suffix in (".npy", ".jsonl", ".parquet"):
        write(tmp_path / f"none{suffix}", 0, 0)
    assert np.load(tmp_path / "none.npy").shape == (0, 5)  # as wide as others to stack with
    assert (tmp_path / "none.jsonl").read_bytes() == b""
    table = parquet.read_table(tmp_path / "none.parquet")  # joined with others by the same column
    assert (len(table), table.column_names) == (0, ["index", "id", "embedding"])
    vectors = VECTORS.copy()
    vectors[4] = np.nan
    for name in ("v.npy", "v.jsonl"):
        with VectorFile(tmp_path / name, MADE_FROM, 5, resume=False) as file:
            file.append(ROWS, vectors)
            file.finish()
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), vectors)
    found = [row["index"] for row in read(tmp_path / "v.jsonl")]
    assert found == [*range(4), *range(5, 12)]


@settings(max_examples=40)
@given(
    st.sampled_from([".npy", ".jsonl", ".jsonl.gz", ".parquet"]),
    st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=300)), max_size=4),
)
def test_a_broken_run_gives_the_bytes_of_an_unbroken_one(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, breaks: list[tuple[int, bytes]]
) -> None:
    """Each break comes after some chunks, with some bytes of the next one, and of the state, on the disk."""
    folder = tmp_path_factory.mktemp("broken")
    whole, out = folder / f"whole{suffix}", folder / f"v{suffix}"
    write(whole, 0, 12)
    done = 0
    for chunks, torn in breaks:
        stop = min(12, done + 3 * chunks)
        write(out, done, stop, resume=True, finish=False)
        done = stop
        assert not out.exists()
        with (folder / f"v{suffix}.part").open("ab") as part:
            part.write(torn)
        (folder / f".v{suffix}.part.json-{done:08x}").write_bytes(torn)
        (folder / f".v{suffix}-{done:08x}").write_bytes(torn)
    write(out, done, 12, resume=True)
    assert out.read_bytes() == whole.read_bytes()
    assert names(folder) == sorted([whole.name, out.name])
    if suffix == ".npy":
        np.save(whole, VECTORS)
        assert out.read_bytes() == whole.read_bytes()
    else:
        rows = read(out)
        assert [(row["index"], row["id"]) for row in rows] == [(i, f"id {i}") for i in range(12)]
        vectors = np.array([row["embedding"] for row in rows], np.float32)
        np.testing.assert_array_equal(vectors, VECTORS)


def test_a_kill_between_the_last_two_steps_is_an_end(tmp_path: Path) -> None:
    out = tmp_path / "v.npy"
    write(out, 0, 12, finish=False)
    assert not VectorFile.ended(out)
    (tmp_path / "v.npy.part").rename(out)
    assert VectorFile.ended(out)
    assert names(tmp_path) == ["v.npy"]
    out = tmp_path / "v.parquet"
    write(out, 0, 12, finish=False)
    out.write_bytes(b"the converted rows")  # in one step, before its part is removed
    assert VectorFile.ended(out)
    assert names(tmp_path) == ["v.npy", "v.parquet"]


def refused(out: Path, *, resume: bool = True, skip: Any = None, **made_from: Any) -> str:
    with (
        pytest.raises(CommandError) as caught,
        VectorFile(out, {**MADE_FROM, **made_from}, 5, resume=resume) as file,
    ):
        file.skip(skip)
    return str(caught.value)


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "v.npy"
    assert "suffix must be one of .jsonl, .jsonl.gz, .npy, .parquet" in refused(tmp_path / "v.txt")
    write(out, 0, 6, finish=False)
    assert "continue it with --resume, or remove it" in refused(out, resume=False)
    assert "was made with model tiny 0123, not tiny 4567" in refused(out, model="tiny 4567")
    assert "was made with normalize True, not False" in refused(out, normalize=False)
    another, renamed = Row("another", 5, "id 5"), replace(ROWS[5], id="id 6")
    elsewhere = [replace(ROWS[0], text="text"), replace(ROWS[1], text=" 0text 1")]
    for rows in (ROWS[:5], [*ROWS[:5], another], [*elsewhere, *ROWS[2:6]], [*ROWS[:5], renamed]):
        said = refused(out, skip=rows)
        assert "the first 6 texts, or their ids, are not those" in said
    part = tmp_path / "v.npy.part"
    part.write_bytes(part.read_bytes()[:-1])
    assert "is shorter than" in refused(out)
    (tmp_path / "v.npy.part.json").write_text("{")
    assert "remove both" in refused(out)
    out.write_bytes(b"")
    assert "exists: remove it, or name another file" in refused(out)


def test_a_full_disk_is_named_with_its_remedy_and_leaves_no_part_without_a_state(
    tmp_path: Path,
) -> None:
    out, part = tmp_path / "v.npy", tmp_path / "v.npy.part"
    part.symlink_to("/dev/full")
    with pytest.raises(CommandError) as caught:
        write(out, 0, 12)
    reason = "No space left on device: make room"
    assert str(caught.value) == f"cannot write {out}: {reason}, or name another file"
    assert names(tmp_path) == []

    write(out, 0, 6, finish=False)
    state = tmp_path / "v.npy.part.json"
    with VectorFile(out, MADE_FROM, 5, resume=True) as file, Path("/dev/full").open("wb") as full:
        file.skip(ROWS[:6])
        os.dup2(full.fileno(), file._file.fileno())
        with pytest.raises(CommandError) as caught:
            file.append(ROWS[6:9], VECTORS[6:9])
        os.dup2(os.open(os.devnull, os.O_WRONLY), file._file.fileno())
    assert str(caught.value) == f"cannot write {out}: {reason}, then continue with --resume"
    assert names(tmp_path) == [part.name, state.name]
    write(out, 6, 12, resume=True)
    np.testing.assert_array_equal(np.load(out), VECTORS)
