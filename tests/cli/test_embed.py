"""`heedful embed`: what it writes, says, and survives."""

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

import heedful
from heedful.cli.embed import command
from heedful.cli.texts import CHUNK
from tests.builders import random_texts
from tests.cli.conftest import Command
from tests.process import PATIENCE, ROOT, wait_for, without_torch
from tests.writing import lines

ROWS = 3 * CHUNK + 100
TEXTS = random_texts(ROWS)


def test_killed_twice_it_gives_the_bytes_of_an_uninterrupted_run(
    models: Path, tmp_path: Path
) -> None:
    corpus, whole = tmp_path / "corpus.jsonl", tmp_path / "whole.npy"
    corpus.write_text(lines(*({"sentence": text} for text in TEXTS)))
    command(str(corpus), str(whole), text_column="sentence", model="tiny-sst2", models=models)
    found = np.load(whole)
    assert found.shape == (ROWS, 8)
    with heedful.load("tiny-sst2", models=models) as model:
        np.testing.assert_allclose(found[-300:], model.encode(TEXTS[-300:]), atol=1e-5)

    out = tmp_path / "killed" / "vectors.npy"
    state = out.with_name("vectors.npy.part.json")
    # As where the service runs: without torch, which spaCy would load in every process.
    path = os.pathsep.join([str(without_torch(tmp_path / "no_torch")), os.getenv("PYTHONPATH", "")])

    def start() -> subprocess.Popen[bytes]:
        arguments = ("-", "--format", "jsonl", "--field", "sentence", "--model", "tiny-sst2")
        return subprocess.Popen(
            [sys.executable, "-m", "heedful", "embed", *arguments, "--out", out, "--resume"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "HEEDFUL_MODELS": str(models)},
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def rows() -> int:
        return int(json.loads(state.read_bytes())["rows"]) if state.exists() else 0

    # Fed through a pipe that is held back, so that it cannot have ended before the kill.
    content = corpus.read_bytes().splitlines(keepends=True)
    for parts in (1, 2):
        process = start()
        try:
            assert process.stdin
            process.stdin.writelines(content[: parts * CHUNK + 50])
            process.stdin.flush()
            wait_for(lambda n=parts: rows() == n * CHUNK or None, "rows on the disk")  # type: ignore[misc]
        finally:
            process.kill()
            process.communicate(timeout=PATIENCE)
        assert not out.exists()
    process = start()
    _, said = process.communicate(corpus.read_bytes(), PATIENCE)
    assert process.returncode == 0
    assert said.decode().startswith(
        f"vectors.npy: continues after row {2 * CHUNK}\nvectors.npy: {ROWS} rows; "
    )
    assert out.read_bytes() == whole.read_bytes()
    assert [path.name for path in out.parent.iterdir()] == ["vectors.npy"]
    process = start()
    assert process.communicate(b"", PATIENCE)[1].decode() == f"{out} is complete already\n"


def test_choices(models: Path, tmp_path: Path) -> None:
    corpus, out = tmp_path / "corpus.csv", tmp_path / "vectors.jsonl"
    corpus.write_text('id,body\n1,"two\nkids"\n2,' + "dog " * 20 + "\n3,bad\n")
    asked: dict[str, Any] = {"text_column": "body", "dimensions": 3, "normalize": False}
    command(str(corpus), str(out), models=models, truncate=True, resume=True, **asked)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["index"], len(row["embedding"])) for row in rows] == [(0, 3), (1, 3), (2, 3)]
    assert not np.isclose(np.linalg.norm(rows[0]["embedding"]), 1)


def test_integer_ids_of_parquet_stay_integers(models: Path, tmp_path: Path) -> None:
    ids = pyarrow.array([7, None, 2**31 - 1], pyarrow.int32())
    file, out = tmp_path / "t.parquet", tmp_path / "v.parquet"
    parquet.write_table(pyarrow.table({"text": ["two kids", "dog", "bad"], "key": ids}), file)
    command(str(file), str(out), id_column="key", models=models)
    assert parquet.read_table(out)["id"].combine_chunks() == ids


def test_bad_rows_are_skipped_and_ids_carried_through_gzip_parquet_and_stdout(
    heedful: Command, models: Path, tmp_path: Path
) -> None:
    corpus, out = tmp_path / "corpus.csv.gz", tmp_path / "v.parquet"
    lines = "key,text\na,two kids\nb,\nc," + "dog " * 20 + "\nd,bad\n"
    corpus.write_bytes(gzip.compress(lines.encode()))
    how = ("--id-column", "key", "--on-error", "skip", "--models", models)
    done = heedful("embed", corpus, "--out", out, *how)
    assert re.fullmatch(r"v.parquet: 4 rows, 2 of them skipped; \d+ rows/s\n", done.stderr)
    rows = parquet.read_table(out).to_pylist()
    found = [(row["index"], row["id"], len(row["embedding"])) for row in rows]
    assert found == [(0, "a", 8), (3, "d", 8)]
    printed = heedful("embed", corpus, "--out", "-", *how).stdout
    assert [json.loads(line) for line in printed.splitlines()] == [
        {**row, "embedding": pytest.approx(row["embedding"])} for row in rows
    ]


def test_a_zipped_table_of_another_program_on_stdin(
    heedful: Command, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table"
    table.write_bytes(gzip.compress("id\ttext\n1\ttwo kids\n2\tbad café\n".encode("cp1252")))
    how = ("--format", "csv", "--delimiter", r"\t", "--encoding", "cp1252", "--models", models)
    with table.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        done = heedful("embed", "-", "--out", "-", *how)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2), done.stderr
    wrong = heedful("embed", "-", "--out", "-", *how, "--delimiter", ";;")
    assert wrong.returncode == 2
    assert "';;': give one character" in wrong.stderr
