"""`heedful embed`, as a separate process: what it writes, says, and survives."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from rich.console import Console

import heedful
from heedful.cli.embed import Choice, command, embed_file
from heedful.cli.errors import CommandError, missing_extra
from heedful.cli.placement import Place
from heedful.cli.texts import CHUNK, Source
from tests.builders import random_texts
from tests.process import PATIENCE, ROOT, wait_for, without_torch

ROWS = 3 * CHUNK + 100


TEXTS = random_texts(ROWS)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    file.write_text("".join(json.dumps({"sentence": text}) + "\n" for text in TEXTS))
    return file


@pytest.fixture(scope="module")
def environment(models: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """As where the service runs: without torch, which spaCy would load in every process."""
    folder = without_torch(tmp_path_factory.mktemp("no_torch"))
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "HEEDFUL_MODELS": str(models)}


def start(
    environment: dict[str, str], *arguments: str | Path, stdout: int | None = None
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "heedful", "embed", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=pipe, stdout=stdout, stderr=pipe
    )


def run(environment: dict[str, str], *arguments: str | Path, stdin: bytes = b"") -> tuple[int, str]:
    """The exit status and what it said."""
    process = start(environment, *arguments)
    _, said = process.communicate(stdin, PATIENCE)
    return process.returncode, said.decode()


@pytest.fixture(scope="module")
def whole(corpus: Path, environment: dict[str, str]) -> Path:
    """The vectors of an uninterrupted run."""
    out = corpus.with_name("whole.npy")
    arguments = ("--field", "sentence", "--model", "tiny-sst2", "--out", out)
    status, said = run(environment, corpus, *arguments)
    assert status == 0
    assert re.fullmatch(rf"whole.npy: {ROWS} rows; \d+ rows/s\n", said)
    return out


def test_the_vectors_are_the_librarys(whole: Path, models: Path) -> None:
    found = np.load(whole)
    assert found.shape == (ROWS, 8)
    with heedful.load("tiny-sst2", models=models) as model:
        np.testing.assert_allclose(found[-300:], model.encode(TEXTS[-300:]), atol=1e-5)


def test_killed_twice_it_gives_the_bytes_of_an_uninterrupted_run(
    corpus: Path, environment: dict[str, str], whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "vectors.npy"
    state = tmp_path / "vectors.npy.part.json"
    arguments = ("--field", "sentence", "--model", "tiny-sst2", "--out", out, "--resume")

    def rows() -> int:
        return int(json.loads(state.read_bytes())["rows"]) if state.exists() else 0

    # Fed through a pipe that is held back, so that it cannot have ended before the kill.
    content = corpus.read_bytes().splitlines(keepends=True)
    for parts in (1, 2):
        process = start(environment, "-", "--format", "jsonl", *arguments)
        try:
            assert process.stdin
            process.stdin.writelines(content[: parts * CHUNK + 50])
            process.stdin.flush()
            wait_for(lambda n=parts: rows() == n * CHUNK or None, "rows on the disk")  # type: ignore[misc]
        finally:
            process.kill()
            process.communicate(timeout=PATIENCE)
        assert not out.exists()
    status, said = run(environment, "-", "--format", "jsonl", *arguments, stdin=b"".join(content))
    assert status == 0
    assert said.startswith(
        f"vectors.npy: continues after row {2 * CHUNK}\nvectors.npy: {ROWS} rows; "
    )
    assert out.read_bytes() == whole.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.npy"]
    assert run(environment, "-", *arguments) == (0, f"{out} is complete already\n")


def test_choices_and_a_text_that_is_too_long(models: Path, tmp_path: Path) -> None:
    corpus, out = tmp_path / "corpus.csv", tmp_path / "vectors.jsonl"
    corpus.write_text('id,body\n1,"two\nkids"\n2,' + "dog " * 20 + "\n3,bad\n")
    asked: dict[str, Any] = {"text_column": "body", "dimensions": 3, "normalize": False}
    long = r":4: the text has 20 tokens and is longer than tiny-flat .*--on-error"
    with pytest.raises(CommandError, match=long):
        command(str(corpus), str(out), models=models, **asked)
    assert not out.exists()
    command(str(corpus), str(out), models=models, truncate=True, resume=True, **asked)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["index"], len(row["embedding"])) for row in rows] == [(0, 3), (1, 3), (2, 3)]
    assert not np.isclose(np.linalg.norm(rows[0]["embedding"]), 1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"dimensions": 9}, "--dimensions is 9, tiny-flat has 1 to 8"),
        ({"id_column": "n"}, r"--id-column: .*holds vectors alone"),
        ({"out": "there.npy"}, r"there\.npy exists: remove it, or name another file"),
    ],
)
def test_a_wrong_argument_leaves_no_file(
    models: Path, tmp_path: Path, asked: dict[str, Any], said: str
) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "dog", "n": 1}\n')
    (tmp_path / "there.npy").touch()
    out = tmp_path / asked.pop("out", "v.npy")
    with pytest.raises(CommandError, match=said):
        command(str(tmp_path / "t.jsonl"), str(out), models=models, **asked)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.jsonl", "there.npy"]


def test_integer_ids_of_parquet_stay_integers(models: Path, tmp_path: Path) -> None:
    ids = pyarrow.array([7, None, 2**31 - 1], pyarrow.int32())
    file, out = tmp_path / "t.parquet", tmp_path / "v.parquet"
    parquet.write_table(pyarrow.table({"text": ["two kids", "dog", "bad"], "key": ids}), file)
    command(str(file), str(out), id_column="key", models=models)
    assert parquet.read_table(out)["id"].combine_chunks() == ids


@pytest.mark.parametrize(
    ("source", "out", "said"),
    [
        ("nowhere.txt", "v.npy", "cannot read nowhere.txt: No such file"),
        ("README.md", "v.npy", "README.md: the suffix is none of .jsonl, .csv, .tsv, .txt and .pa"),
        ("-", "v.txt", "v.txt: the suffix must be one of .jsonl, .jsonl.gz, .npy, .parquet"),
    ],
)
def test_files_are_looked_at_before_the_models_are_loaded(
    tmp_path: Path, source: str, out: str, said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        embed_file(Source(source), Path(out), Place(tmp_path), Choice(), console=Console())


@pytest.mark.parametrize(("source", "out"), [("-", "v.parquet"), ("t.parquet", "v.npy")])
def test_parquet_without_pyarrow_is_refused_before_the_models_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as where it is not installed
    with pytest.raises(ModuleNotFoundError) as caught:
        embed_file(Source(source), Path(out), Place(tmp_path), Choice(), console=Console())
    for arguments, extra in (
        ("embed", "parquet"),
        ("embed --ray=local", "ray"),
        ("embed --ray auto", "ray"),
        ("predict --ray=auto", "ray"),
    ):
        said = f"this needs the extra {extra}: make dev, or pip install 'heedful[{extra}]'"
        assert missing_extra(caught.value, *arguments.split()) == f"heedful: {said}"
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_bad_rows_are_skipped_and_ids_carried_through_gzip_parquet_and_stdout(
    environment: dict[str, str], tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus.csv.gz"
    lines = "key,text\na,two kids\nb,\nc," + "dog " * 20 + "\nd,bad\n"
    corpus.write_bytes(gzip.compress(lines.encode()))
    arguments: list[str | Path] = [corpus, "--id-column", "key", "--on-error", "skip", "--out"]
    status, said = run(environment, *arguments, out := tmp_path / "v.parquet")
    assert status == 0
    assert re.fullmatch(r"v.parquet: 4 rows, 2 of them skipped; \d+ rows/s\n", said)
    rows = parquet.read_table(out).to_pylist()
    found = [(row["index"], row["id"], len(row["embedding"])) for row in rows]
    assert found == [(0, "a", 8), (3, "d", 8)]
    process = start(environment, *arguments, "-", stdout=subprocess.PIPE)
    printed, _ = process.communicate(timeout=PATIENCE)
    assert [json.loads(line) for line in printed.splitlines()] == [
        {**row, "embedding": pytest.approx(row["embedding"])} for row in rows
    ]


def test_a_zipped_table_of_another_program_on_stdin(environment: dict[str, str]) -> None:
    table = gzip.compress("id\ttext\n1\ttwo kids\n2\tbad café\n".encode("cp1252"))
    arguments = ("--format", "csv", "--delimiter", r"\t", "--encoding", "cp1252", "--out", "-")
    process = start(environment, "-", *arguments, stdout=subprocess.PIPE)
    printed, said = process.communicate(table, PATIENCE)
    assert (process.returncode, len(printed.splitlines())) == (0, 2), said
    status, wrong = run(environment, "-", *arguments, "--delimiter", ";;")
    assert status == 2
    assert "';;': give one character" in wrong


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"actors": 7}, "--actors has a meaning only with --ray"),
        ({"ray": "local", "format": "csv"}, "--format has a meaning only without --ray"),
        ({"ray": "local", "on_error": "stop"}, "--on-error has a meaning only without --ray"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        command("texts.txt", "vectors.npy", **options)
