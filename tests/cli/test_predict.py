"""`heedful predict` and `heedful evaluate`: rows of any file with the answers of `heedful.load`, and their figures."""

import csv
import gzip
import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn import metrics

import heedful
from heedful.cli import evaluate
from heedful.cli.predict import command
from heedful.cli.scores import Scores, wilson
from tests.builders import random_texts
from tests.writing import lines, table

TEXTS = ["two kids, a dog", "", "bad hands", "dog " * 20]
"""One is blank, and the last is longer than a model reads."""
TABLE = [{"id": str(i), "body": text, "n": "7"} for i, text in enumerate(TEXTS)]


def separated(separator: str) -> str:
    return table([*TABLE[0]], *(list(row.values()) for row in TABLE), separator=separator)


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


FILES = [
    ("t.csv", separated(";").encode(), "o.csv"),
    ("t.csv", separated("|").encode("utf-16"), "o.tsv.gz"),
    ("t.tsv.gz", gzip.compress(separated("\t").encode(), mtime=0), "o.jsonl"),
    ("t.jsonl", lines(*TABLE).encode(), "o.csv.gz"),
    ("t.jsonl", lines(*TABLE).encode(), "o.parquet"),
    ("t.csv", separated(",").encode(), "other.parquet"),
]


def test_every_row_keeps_its_columns_and_gets_what_the_library_answers(
    models: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = list(filter(None, TEXTS))
    with heedful.load("tiny-sst2", models=models) as model:
        labels, probabilities = model.predict(texts).tolist(), model.predict_proba(texts)
    for source, content, out in FILES:
        file, target = tmp_path / source, tmp_path / f"for {out}" / out
        file.write_bytes(content)
        how: dict[str, Any] = {"encoding": "utf-16"} if "tsv.gz" in out else {}
        command(str(file), str(target), "tiny-sst2", text_column="body", models=models, **how)
        rows = read(target)
        assert [{name: row[name] for name in TABLE[0]} for row in rows] == TABLE
        blank = rows.pop(1)
        assert {blank["predicted"], blank["score"]} <= {"", None}
        assert [row["predicted"] for row in rows] == labels
        scores = [float(row["score"]) for row in rows]
        np.testing.assert_allclose(scores, probabilities.max(axis=1), atol=1e-6)
        if target.suffix in (".jsonl", ".parquet"):
            every = [list(row["scores"].values()) for row in rows]
            np.testing.assert_allclose(every, probabilities)
        shown = capfd.readouterr().err
        assert f"{out}: 4 rows, 1 of them without a text, 1 of them cut; " in shown
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


def test_figures_are_those_of_scikit_learn(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = random_texts(60)
    with heedful.load("tiny-sst2", models=models) as model:
        probabilities, known = model.predict_proba(texts), model.labels
    rng = np.random.default_rng(0)
    given = rng.choice([*known, "other"], size=60, p=[0.45, 0.45, 0.1]).tolist()
    rows = [*zip(texts, given, strict=True), ("", known[0]), ("bad", " ")]
    file = tmp_path / "own.csv"
    file.write_text(table(("Message", "topic"), *rows))

    options = {"text_column": "Message", "label_column": "topic", "models": models}
    evaluate.command(str(file), model="tiny-sst2", as_json=True, **options)  # type: ignore[arg-type]
    found = json.loads(capsys.readouterr().out)
    answers = [known[i] for i in probabilities.argmax(axis=1)]
    names = found["labels"]
    assert names == [*known, "other"]
    assert (found["rows"], found["left_out"], found["answered"]) == (60, 2, 60)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(given, answers))
    f1 = metrics.f1_score(given, answers, labels=names, average="macro", zero_division=0)
    assert found["macro_f1"] == pytest.approx(f1)
    assert found["confusion"] == metrics.confusion_matrix(given, answers, labels=names).tolist()
    own = [i for i, label in enumerate(given) if label != "other"]
    loss = metrics.log_loss([given[i] for i in own], probabilities[own], labels=known)
    assert found["log_loss"] == pytest.approx(loss)
    report = metrics.classification_report(given, answers, output_dict=True, zero_division=0)
    for one in found["classes"]:
        expected = report[one["label"]]
        assert one["precision"] == pytest.approx(expected["precision"])
        assert (one["recall"], one["rows"]) == (expected["recall"], expected["support"])

    evaluate.command(str(file), model=str(models / "tiny-sst2"), **options)  # type: ignore[arg-type]
    said = capsys.readouterr().out
    assert f"{file}: 60 rows, 2 left out that lack a text or a label; tiny-sst2 " in said
    assert f"accuracy {found['accuracy']:.3f} (" in said
    assert "labels that the model does not know, which count as wrong: other\n" in said
    assert "label \\ answer" in said


def test_pairs_and_labels_of_ones_own_have_scores_too(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.csv"
    rows = [("two kids", "the dog", "neutral"), ("bad", "the dog", "entailment")]
    file.write_text(table(("premise", "hypothesis", "label"), *rows))
    evaluate.command(str(file), model="tiny-nli", as_json=True, models=models)
    assert json.loads(capsys.readouterr().out)["rows"] == 2
    file.write_text(table(("text", "label"), ("two kids", "dog"), ("bad", "kid")))
    evaluate.command(str(file), model="tiny-flat", labels="dog,kid", as_json=True, models=models)
    assert json.loads(capsys.readouterr().out)["labels"] == ["dog", "kid"]


def test_calibration_and_intervals() -> None:
    confidence = np.array([0.95, 0.95, 0.65, 0.65])
    probabilities = np.stack([confidence, 1 - confidence], axis=1)
    scores = Scores("ab", np.array([0, 0, 0, 1]), probabilities, np.array([True] * 4))
    # Of 0.95 all are right, of 0.65 a half.
    assert scores.summary()["calibration_error"] == pytest.approx((0.05 + 0.15) / 2)
    # Brown, Cai and DasGupta (2001): 5 of 10.
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)  # Wilson 1927, by hand
    assert wilson(10, 10)[1] == 1.0
