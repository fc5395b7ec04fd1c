"""`heedful predict`: the rows of any file with the answers that `heedful.load` gives."""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import heedful
from heedful.cli.errors import CommandError
from heedful.cli.predict import command
from heedful.library.model import Model
from heedful.runtime.errors import StartupError

TEXTS = ["two kids, a dog", "", "bad hands", "dog " * 20]
"""One is blank, and the last is longer than a model reads."""
TABLE = [{"id": str(i), "body": text, "n": "7"} for i, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def classifier(models: Path) -> Iterator[Model]:
    with heedful.load("tiny-sst2", models=models) as model:
        yield model


def table(separator: str) -> str:
    out = io.StringIO()
    rows = csv.DictWriter(out, ["id", "body", "n"], delimiter=separator)
    rows.writeheader()
    rows.writerows(TABLE)
    return out.getvalue()


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(file: Path) -> list[dict[str, Any]]:
    """The rows of what was written, by another reader than ours; of a table all are strings."""
    if file.suffix == ".parquet":
        rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
        return rows
    content = file.read_bytes()
    text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode()
    if "jsonl" in file.name:
        return [json.loads(line) for line in text.splitlines()]
    separator = "\t" if "tsv" in file.name else ","
    return list(csv.DictReader(io.StringIO(text), delimiter=separator))


@pytest.mark.parametrize(
    ("source", "content", "out", "options"),
    [
        ("t.csv", table(";").encode(), "o.csv", {}),
        ("t.csv", table("|").encode("utf-16"), "o.tsv.gz", {"encoding": "utf-16"}),
        ("t.tsv.gz", gzip.compress(table("\t").encode(), mtime=0), "o.jsonl", {}),
        ("t.jsonl", lines(TABLE).encode(), "o.csv.gz", {}),
        ("t.jsonl", lines(TABLE).encode(), "o.parquet", {}),
        ("t.csv", table(",").encode(), "o.parquet", {}),
    ],
)
def test_every_row_keeps_its_columns_and_gets_what_the_library_answers(
    models: Path,
    classifier: Model,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    source: str,
    content: bytes,
    out: str,
    options: dict[str, Any],
) -> None:
    (tmp_path / source).write_bytes(content)
    file = str(tmp_path / source)
    target = tmp_path / "new" / out
    command(file, str(target), "tiny-sst2", text_column="body", models=models, **options)
    rows = read(target)
    assert [{name: row[name] for name in TABLE[0]} for row in rows] == TABLE
    assert {rows[1][name] for name in ("predicted", "score")} <= {"", None}
    filled = [row for row in rows if row["body"]]
    texts = [row["body"] for row in filled]
    probabilities = classifier.predict_proba(texts)
    assert [row["predicted"] for row in filled] == classifier.predict(texts).tolist()
    scores = [float(row["score"]) for row in filled]
    np.testing.assert_allclose(scores, probabilities.max(axis=1), atol=1e-6)
    if not out.startswith(("o.csv", "o.tsv")):
        found = [[row["scores"][label] for label in classifier.labels] for row in filled]
        np.testing.assert_allclose(found, probabilities)
    said = capfd.readouterr().err
    assert f"{out}: 4 rows, 1 of them without a text, 1 of them cut; " in said
    assert [path.name for path in target.parent.iterdir()] == [out]


def test_types_of_parquet_stay(models: Path, tmp_path: Path) -> None:
    own = {
        "text": ["two kids", None],
        "day": [date(2026, 1, 2), None],
        "tags": [["a"], []],
        "n": pa.array([1, 2], pa.int8()),
    }
    parquet.write_table(pa.table(own), tmp_path / "t.parquet")
    command(str(tmp_path / "t.parquet"), str(tmp_path / "o.parquet"), "tiny-sst2", models=models)
    found = parquet.read_table(tmp_path / "o.parquet")
    assert found.select(list(own)).equals(pa.table(own))
    assert found["predicted"].null_count == 1


def test_pairs_labels_of_ones_own_and_plain_text(
    models: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "pairs.csv").write_text("a,b\ntwo kids,the dog\nbad,\n")
    columns: dict[str, Any] = {"premise_column": "a", "hypothesis_column": "b"}
    command(str(tmp_path / "pairs.csv"), "-", models=models, **columns)
    pairs = list(csv.DictReader(io.StringIO(capfdbinary.readouterr().out.decode())))
    with heedful.load("tiny-nli", models=models) as model:
        [expected] = model.nli([("two kids", "the dog")])
    assert pairs[0]["predicted"] == max(expected, key=expected.__getitem__)
    assert pairs[1] == {"a": "bad", "b": "", "predicted": "", "score": ""}

    (tmp_path / "t.txt").write_text("two kids\nbad\n")
    out = tmp_path / "o.jsonl"
    command(str(tmp_path / "t.txt"), str(out), labels="dog, bad", models=models)
    with (
        heedful.load("tiny-flat", models=models) as flat,
        heedful.load("tiny-nli", models=models) as model,
    ):
        fitting = flat.classify(["two kids", "bad"], ["dog", "bad"], nli=model)
    rows = read(out)
    assert [row["text"] for row in rows] == ["two kids", "bad"]
    assert [row["predicted"] for row in rows] == [one.label for one in fitting]
    assert [row["scores"] for row in rows] == [pytest.approx(one.scores) for one in fitting]


@pytest.mark.parametrize(
    ("content", "out", "options", "said"),
    [
        ("id,Body\n", "o.csv", {"text_column": "body"}, r"no column 'body': .*; did you mean 'Body'\?; set --text-c"),
        ("id,text,text\n", "o.csv", {}, "two columns 'text'"),
        ("n,n,text\n1,2,bad\n", "o.csv", {}, "two columns 'n'"),
        ("score,text\n1,bad\n", "o.csv", {}, "t.csv:2: a column is named 'score', as one that is added: rename it"),
        ("text\nbad\n", "o.xlsx", {}, "o.xlsx: the suffix must be one of .csv, .tsv, "),
        ("text\nbad\n", "o.csv", {"model": "tiny-flat"}, "tiny-flat has no labels: give yours with --labels a,b,c"),
        ("text\nbad\n", "o.csv", {"labels": "a,b", "model": "tiny-sst2"}, "has its own, .*leave --labels or"),
        ("a\nbad\n", "o.csv", {"labels": "a,b", "premise_column": "a"}, "--labels are for one text a row"),
        ("a\nbad\n", "o.csv", {"model": "tiny-sst2", "premise_column": "a"}, "reads one text a row: name its"),
        ("a\nbad\n", "o.csv", {"id_column": "a"}, "--id-column has a meaning only with --ray"),
        ("a\nbad\n", "o", {"labels": "a,b", "ray": "local"}, "--labels has a meaning only without --ray"),
        ("premise\nbad\n", "o.csv", {"model": "tiny-nli"}, "no column 'hypothesis': .*; set --premise-column"),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_no_file(
    models: Path, tmp_path: Path, content: str, out: str, options: dict[str, Any], said: str
) -> None:
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(CommandError, match=said):
        command(str(tmp_path / "t.csv"), str(tmp_path / out), models=models, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_rows_of_other_columns_do_not_fit_a_table(models: Path, tmp_path: Path) -> None:
    rows = [{"text": "bad"}] * 600 + [{"text": "bad", "note": "new"}]
    (tmp_path / "t.jsonl").write_text(lines(rows))
    file = str(tmp_path / "t.jsonl")
    with pytest.raises(
        CommandError, match=r"other columns than the rows before it .*write \.jsonl"
    ):
        command(file, str(tmp_path / "o.csv"), "tiny-sst2", models=models)
    command(file, str(tmp_path / "o.jsonl"), "tiny-sst2", models=models)
    assert read(tmp_path / "o.jsonl")[-1]["note"] == "new"
    with pytest.raises(CommandError, match=r"cannot read nowhere\.csv"):  # before a model is loaded
        command("nowhere.csv", str(tmp_path / "o.csv"), "tiny-sst2", models=models)
    with pytest.raises(StartupError, match="no bundle 'tiny'"):
        command("nowhere.csv", str(tmp_path / "o.csv"), "tiny", models=models)
