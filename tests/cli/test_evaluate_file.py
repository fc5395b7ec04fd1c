"""`heedful evaluate FILE --model M`: the figures of scikit-learn on the answers of `heedful.load`."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

import heedful
from heedful.cli.errors import CommandError
from heedful.cli.evaluate import command
from heedful.cli.scores import Scores, wilson
from tests.builders import random_texts


def table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([columns, *rows])
    return out.getvalue()


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
    file.write_text(table(("Message", "topic"), rows))

    options = {"text_column": "Message", "label_column": "topic", "models": models}
    command(str(file), model="tiny-sst2", as_json=True, **options)  # type: ignore[arg-type]
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

    command(str(file), model=str(models / "tiny-sst2"), **options)  # type: ignore[arg-type]
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
    file.write_text(table(("premise", "hypothesis", "label"), rows))
    command(str(file), model="tiny-nli", as_json=True, models=models)
    assert json.loads(capsys.readouterr().out)["rows"] == 2
    file.write_text(table(("text", "label"), [("two kids", "dog"), ("bad", "kid")]))
    command(str(file), model="tiny-flat", labels="dog,kid", as_json=True, models=models)
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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text,label\nbad,Negativ\n", r"no row has a label of tiny-sst2, .*did you mean 'negative'\?"),
        ("text,topic\nbad,x\n", "no column 'label': .*; set --text-column or --label-column"),
        ("text,label\n,negative\n", "no row has a label of tiny-sst2, .*--label-column has none"),
    ],
)  # fmt: skip
def test_what_is_refused(models: Path, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(CommandError, match=said):
        command(str(tmp_path / "t.csv"), model="tiny-sst2", models=models)
