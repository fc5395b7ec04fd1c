"""`heedful embed --ray` and `heedful predict --ray`: real clusters, real kills."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet
from rich.console import Console

from heedful.cli import ray_run
from heedful.cli.embed import Choice, embed_file
from heedful.cli.errors import CommandError
from heedful.cli.placement import Place
from heedful.cli.texts import Columns, Source
from tests.builders import random_texts
from tests.process import PATIENCE, ROOT, wait_for

ROWS = int(os.environ.get("HEEDFUL_RAY_ROWS", "3000"))
"""More are for a run by hand."""
ROWS_PER_FILE = ROWS // 30
LONG, BLANK, NULL = 7, 1234, ROWS - 1
"""Ids of rows that cannot be embedded."""
ENVIRONMENT = {
    **os.environ,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_worker_prestart": "0",  # a worker's start costs seconds of a core
    "RAY_prestart_worker_first_driver": "0",
    "RAY_worker_niceness": "0",  # on a busy machine the default, 15, starves them
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = random_texts(ROWS)
    texts[LONG], texts[BLANK] = "dog " * 20, " "
    file = tmp_path_factory.mktemp("corpus") / "corpus.parquet"
    table = {"key": range(ROWS), "body": [*texts[:NULL], None], "other": texts}
    parquet.write_table(pa.table(table), file)
    return file


class Cluster:
    """Three nodes of Ray."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address = self._line()

    def kill_a_node(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("kill\n")
        self._process.stdin.flush()
        assert self._line() == "killed"

    def _line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline().strip()
        assert line, "the cluster ended"
        return line


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    command = [sys.executable, "-m", "tests.ray_cluster"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, text=True, **pipes) as process:
        yield Cluster(process)
        process.communicate(timeout=PATIENCE)


def start(command: str, models: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    whole = [sys.executable, "-m", "heedful", command, *arguments, "--models", models]
    return subprocess.Popen(whole, cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)


def run(command: str, models: Path, *arguments: str | Path) -> tuple[int, str]:
    """The exit status and the last line that it said."""
    process = start(command, models, *arguments)
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said.splitlines()[-1]


def answered(folder: Path) -> int:
    return sum(1 for file in folder.glob("*.parquet") if not file.name.endswith(".pending.parquet"))


def wait_for_files(process: subprocess.Popen[str], folder: Path, count: int) -> None:
    def ask() -> bool | None:
        assert process.poll() is None, process.communicate()
        return answered(folder) >= count or None

    wait_for(ask, "an answered file")


def test_a_killed_driver_and_a_killed_node_lose_no_row_and_repeat_none(
    models: Path, corpus: Path, cluster: Cluster, tmp_path: Path
) -> None:
    out, done = tmp_path / "out", tmp_path / "out.checkpoint"
    columns = ("--text-column", "body", "--id-column", "key", "--model", "tiny-sst2")
    arguments: list[str | Path] = [corpus, "--out", out, *columns]
    arguments += ["--ray", cluster.address, "--rows-per-file", str(ROWS_PER_FILE)]

    process = start("embed", models, *arguments)
    try:
        wait_for_files(process, done, 1)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)
    before = answered(done)
    assert before < ROWS / ROWS_PER_FILE
    remedy = "continue with --resume, remove it, or name another folder"
    assert run("embed", models, *arguments) == (1, f"heedful: {out} holds files: {remedy}")

    process = start("embed", models, *arguments, "--resume")
    try:
        wait_for_files(process, done, before + 1)
        cluster.kill_a_node()
        assert answered(done) < ROWS / ROWS_PER_FILE
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, said
    assert said.splitlines()[-1] == f"{out}: {ROWS} rows, 3 of them in outcome=error"

    found = dataset.dataset(out, partitioning="hive").to_table().sort_by("key")
    assert found["key"].to_pylist() == list(range(ROWS))
    errors = found.filter(pa.compute.field("outcome") == "error")
    assert errors["key"].to_pylist() == [LONG, BLANK, NULL]
    long, *blank = (str(reason).partition(":")[0] for reason in errors["error"].to_pylist())
    assert long.startswith(
        "body has 20 tokens and is longer than tiny-sst2 reads (16 tokens, and 5"
    )
    assert blank == ["body is blank"] * 2
    plain = tmp_path / "plain.npy"
    choice = Choice("tiny-sst2", on_error="skip")
    source = Source(str(corpus), columns=Columns("body"))
    embed_file(source, plain, Place(models), choice, console=Console(quiet=True))
    width = np.load(plain).shape[1]
    vectors = np.array([row or [np.nan] * width for row in found["embedding"].to_pylist()])
    np.testing.assert_allclose(vectors, np.load(plain), atol=1e-5)
    assert not done.exists()
    assert run("embed", models, *arguments, "--resume") == (0, f"{out} is complete already")


def test_pairs_are_labelled_on_this_machines_cores(models: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "pairs.parquet", tmp_path / "out"
    one = pa.array(["a dog", "two kids"]).dictionary_encode()  # as pandas writes categories
    table = {"id": ["a", "b"], "one": one, "other": ["the dog", ""]}
    parquet.write_table(pa.table(table), file)
    columns = ("--premise-column", "one", "--hypothesis-column", "other", "--id-column", "id")
    said = run("predict", models, file, "--out", out, *columns, "--ray", "local")
    assert said == (0, f"{out}: 2 rows, 1 of them in outcome=error")
    rows = dataset.dataset(out, partitioning="hive").to_table().sort_by("id").to_pylist()
    assert [row["id"] for row in rows] == ["a", "b"]
    shares = rows[0]["probabilities"]
    assert rows[0]["label"] == max(shares, key=shares.__getitem__)
    assert rows[1]["error"].startswith("other is blank")


def test_another_runs_folder_and_rows_that_a_resumed_run_left_out_are_not_passed_over(
    tmp_path: Path,
) -> None:
    """Ray takes a row for answered if another one with its id is."""
    (tmp_path / "thing").touch()
    with pytest.raises(CommandError, match="holds no run of heedful: name another folder"):
        ray_run.Folder(str(tmp_path)).ended({}, resume=True)
    out = tmp_path / "out"
    job = ray_run.Job("embed", "texts.parquet", str(out), ["body"], "key")
    place = ray_run.Folder(job.out)
    assert not place.ended({"model": "one"}, resume=False)
    with pytest.raises(CommandError, match="was made with another model: name another folder"):
        place.ended({"model": "other"}, resume=True)
    (out / "outcome=ok").mkdir()
    parquet.write_table(pa.table({"key": [1, 2]}), out / "outcome=ok" / "one.parquet")
    (tmp_path / "out.checkpoint").mkdir()
    with pytest.raises(CommandError, match=r"holds 2 of the 3 rows of texts.parquet: .* 'key' re"):
        place.end(job, 3)
    assert not place.ended({"model": "one"}, resume=True)
    assert place.end(job, 2) == "2 rows"
    assert place.ended({"model": "one"}, resume=True)
