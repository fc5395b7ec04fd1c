"""A TableModel's answers are the model's; bad rows get their reason alone."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from heedful.library.model import Model
from heedful.library.tables import TableModel
from heedful.runtime.errors import BadInput, WrongTask

TEXTS = ["two kids", "", "dog " * 20, None, "bad\0dog", "the dog wash their hands"]
GOOD = [0, 5]


def test_embed(models: Path, model: Model) -> None:
    keywords = {"dimensions": 3, "normalize": True}
    answers = TableModel(
        "embed", "tiny-sst2", texts=["body"], id="key", keywords=keywords, models=models
    )
    with answers.model:
        found = answers(pa.table({"key": list("abcdef"), "body": TEXTS}))
    assert found.column_names == ["key", "embedding", "outcome", "error"]
    assert found["key"].to_pylist() == list("abcdef")
    assert found.schema.field("embedding").type == pa.list_(pa.float32(), 3)
    good = [TEXTS[i] for i in GOOD]
    expected = model.encode(good, truncate_dim=3)  # type: ignore[arg-type]  # those are texts
    np.testing.assert_allclose(found["embedding"].take(GOOD).to_pylist(), expected, atol=1e-6)
    outcomes = ["ok", "error", "error", "error", "error", "ok"]
    assert found["outcome"].to_pylist() == outcomes
    reasons = [str(reason).partition(":")[0] for reason in found["error"].to_pylist()]
    limits = "(16 tokens, and 500 characters without white space)"
    too_long = f"body has 20 tokens and is longer than tiny-sst2 reads {limits}"
    nul = "body holds a NUL character"
    assert reasons == ["None", "body is blank", too_long, "body is blank", nul, "None"]
    assert found["embedding"].is_null().to_pylist() == [one == "error" for one in outcomes]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([0, 7]), "body is int: give a string"),
        (pa.array([1.5, float("nan")]), "body is float: give a string"),
        (pa.array([b"dog", None]), "body is bytes: give a string"),
    ],
)
def test_a_column_of_other_values_is_named(models: Path, column: pa.Array, reason: str) -> None:
    """Spark and Daft give columns of any type; `heedful embed --ray` refuses these before it starts."""
    answers = TableModel("embed", "tiny-sst2", texts=["body"], id="key", models=models)
    with answers.model:
        found = answers(pa.table({"key": [1, 2], "body": column}))
    assert found["outcome"].to_pylist() == ["error", "error"]
    assert found["error"][0].as_py() == reason


def test_classify(models: Path, model: Model) -> None:
    answers = TableModel("classify", "tiny-sst2", texts=["text"], id="id", models=models)
    with answers.model:
        found = answers(
            pa.table({"id": range(3), "text": ["bad dog", " ", "two kids"]})
        ).to_pylist()
    texts = ["bad dog", "two kids"]
    assert [row["label"] for row in found] == [
        model.predict(texts)[0],
        None,
        model.predict(texts)[1],
    ]
    expected = model.predict_proba(texts)
    assert found[1]["probabilities"] is None
    np.testing.assert_allclose(
        [list(found[i]["probabilities"].values()) for i in (0, 2)], expected, atol=1e-6
    )
    assert list(found[0]["probabilities"]) == ["negative", "positive"]


def test_nli(models: Path) -> None:
    columns = ["premise", "hypothesis"]
    answers = TableModel("nli", "tiny-nli", texts=columns, id="id", models=models)
    table = {"id": [1, 2], "premise": ["a dog", "a dog"], "hypothesis": ["two kids", ""]}
    with answers.model as pairs:
        found = answers(pa.table(table)).to_pylist()
        [expected] = pairs.nli([("a dog", "two kids")])
    assert found[0]["probabilities"] == pytest.approx(expected)
    assert found[0]["label"] == max(expected, key=expected.__getitem__)
    assert found[1]["error"].startswith("hypothesis is blank")


def test_a_wrong_choice_is_an_error_at_once(models: Path) -> None:
    with pytest.raises(WrongTask):
        TableModel("classify", "tiny-flat", texts=["text"], id="id", models=models)
    wide = {"dimensions": 9}
    with pytest.raises(BadInput, match="dimensions"):
        TableModel("embed", "tiny-flat", texts=["t"], id="id", keywords=wide, models=models)


def test_no_row_keeps_the_columns(models: Path) -> None:
    answers = TableModel("embed", "tiny-flat", texts=["text"], id="id", models=models)
    with answers.model:
        none = answers(
            pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())})
        )
        one = answers(pa.table({"id": [1], "text": ["dog"]}))
    assert none.schema == one.schema
