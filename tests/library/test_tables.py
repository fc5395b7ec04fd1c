"""A TableModel's answers are the model's; bad rows get their reason alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from heedful.library.model import Model
from heedful.library.tables import TableModel
from heedful.runtime.errors import BadInput, WrongTask

TEXTS = ["two kids", "", "dog " * 20, None, "bad\0dog", "the dog wash their hands"]
GOOD = [0, 5]


def table(models: Path, task: Any, model: str, *texts: str, **keywords: Any) -> TableModel:
    columns = list(texts or ("text",))
    return TableModel(task, model, texts=columns, id="id", keywords=keywords, models=models)


def answers(of: TableModel, **columns: Any) -> pa.Table:
    count = len(next(iter(columns.values())))
    with of.model:
        return of(pa.table({"id": pa.array(range(count), pa.int64()), **columns}))


def test_embed(models: Path, model: Model) -> None:
    embedding = table(models, "embed", "tiny-sst2", "body", dimensions=3, normalize=True)
    rows = answers(embedding, body=TEXTS)
    assert rows.column_names == ["id", "embedding", "outcome", "error"]
    assert rows["id"].to_pylist() == list(range(6))
    assert rows.schema.field("embedding").type == pa.list_(pa.float32(), 3)
    good = [TEXTS[i] for i in GOOD]
    expected = model.encode(good, truncate_dim=3)  # type: ignore[arg-type]  # those are texts
    np.testing.assert_allclose(rows["embedding"].take(GOOD).to_pylist(), expected, atol=1e-6)
    outcomes = ["ok", "error", "error", "error", "error", "ok"]
    assert rows["outcome"].to_pylist() == outcomes
    reasons = [str(reason).partition(":")[0] for reason in rows["error"].to_pylist()]
    limits = "(16 tokens, and 500 characters without white space)"
    long = f"body has 20 tokens and is longer than tiny-sst2 reads {limits}"
    nul, blank = "body holds a NUL character", "body is blank"
    assert reasons == ["None", blank, long, blank, nul, "None"]
    assert rows["embedding"].is_null().to_pylist() == [outcome == "error" for outcome in outcomes]
    none = answers(table(models, "embed", "tiny-flat"), text=pa.array([], pa.string()))
    assert none.schema == answers(table(models, "embed", "tiny-flat"), text=["dog"]).schema


def test_a_column_of_other_values_is_named(models: Path) -> None:
    """Spark and Daft give columns of any type; `heedful embed --ray` refuses these before it starts."""
    for kind, column in (
        ("int", [0, 7]),
        ("float", [1.5, float("nan")]),
        ("bytes", [b"dog", None]),
    ):
        rows = answers(table(models, "embed", "tiny-sst2", "body"), body=pa.array(column))
        assert rows["outcome"].to_pylist() == ["error", "error"]
        assert rows["error"][0].as_py() == f"body is {kind}: give a string"


def test_classify(models: Path, model: Model) -> None:
    """And pairs: tests/cli/test_ray_run.py."""
    first, blank, last = answers(
        table(models, "classify", "tiny-sst2"), text=["bad dog", " ", "two kids"]
    ).to_pylist()
    texts = ["bad dog", "two kids"]
    assert [first["label"], last["label"]] == model.predict(texts).tolist()
    assert blank["label"] is blank["probabilities"] is None
    assert list(first["probabilities"]) == ["negative", "positive"]
    scores = [list(row["probabilities"].values()) for row in (first, last)]
    np.testing.assert_allclose(scores, model.predict_proba(texts), atol=1e-6)


def test_a_wrong_choice_is_an_error_at_once(models: Path) -> None:
    with pytest.raises(WrongTask):
        table(models, "classify", "tiny-flat")
    with pytest.raises(BadInput, match="dimensions"):
        table(models, "embed", "tiny-flat", dimensions=9)
