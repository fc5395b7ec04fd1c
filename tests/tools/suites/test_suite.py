"""`python -m tools suite`, for real: every set of a bundle's kind, its record and its page."""

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from heedful.export.bundle import TrainedModel, export_bundle
from heedful.export.weight_storage import round_weights
from heedful.runtime.answers import softmax
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ParserCard
from heedful.text.kinds import NLI_LABELS
from heedful.training.errors import ConfigError
from heedful.training.tasks.base import Example
from tests.builders import BuiltParser, build_bundle
from tests.export.trained import trained
from tests.training.test_tasks import lines, write
from tools import bundle_records, suite
from tools.local_model import open_folder
from tools.suites import figures as sets
from tools.suites.figures import calibration_error
from tools.suites.word_means import word_means
from tools.tasks import sst

TEXTS = ("a dog is good", "two kids wash", "the man", "their hands is bad", "not a kid", "dogs")
KNOWN = ("word1 word2", "word3", "word4 word1 word5", "word6 word7", "word8", "word9 word3 word2")
"""Texts of words that the toy of random weights knows."""
PAIRS = [Example((a, b), (i + j) % 3) for i, a in enumerate(TEXTS) for j, b in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def toy(pipeline: BuiltParser) -> TrainedModel:
    """An embedding model of random weights."""
    parser = ParserCard(name=pipeline.name, fingerprint=pipeline.fingerprint)
    return replace(trained("embedding"), task="embed", parser=parser)


@pytest.fixture(scope="module")
def exported(toy: TrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the `toy`: an export takes ten seconds."""
    folder = tmp_path_factory.mktemp("exported") / "ms-san-toy"
    export_bundle(toy, folder)
    return folder


def recorded(folder: Path, parser: BuiltParser, data: Path, rows: int | None = None) -> list[str]:
    """What is printed of a bundle's dev sets; the record is written to `data`."""
    where = {"data": data, "parser": str(parser.folder)}
    return list(suite.record(str(folder), data, split="dev", rows=rows, **where))  # type: ignore[arg-type]


def test_an_nli_bundle_is_scored_and_its_calibration_measured(
    tmp_path: Path, pipeline: BuiltParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sets.NLI, "dev", {"toy": lambda _: PAIRS, "roles": lambda _: PAIRS[:9]})
    labels = ("contradiction", "entailment", "neutral")  # another order than the data's
    build_bundle(tmp_path, pipeline, name="tiny-nli", kind="nli", labels=labels, temperature=2.0)
    folder = tmp_path / "tiny-nli"
    printed = recorded(folder, pipeline, tmp_path)
    with open_folder(folder, str(pipeline.folder)) as model:
        logits = model.logits(PAIRS)[:, [1, 2, 0]]
    gold = np.array([one.label for one in PAIRS])
    found = json.loads((tmp_path / "suite/tiny-nli.json").read_text())
    assert found["version"] == read(folder).card.version
    metrics = ("accuracy", "ECE without temperature", "ECE")
    assert [(one["dataset"], one["metric"], one["rows"]) for one in found["figures"]] == [
        *(("toy", metric, 36) for metric in metrics),
        *(("roles", metric, 9) for metric in ("accuracy", "not entailment", *metrics[1:])),
    ]
    apart = (logits[:9].argmax(1) != NLI_LABELS.index("entailment")).mean()
    assert found["figures"][4]["value"] == pytest.approx(apart)
    accuracy, raw, served = (one["value"] for one in found["figures"][:3])
    assert accuracy == pytest.approx((logits.argmax(1) == gold).mean())
    assert raw == pytest.approx(calibration_error(softmax(logits * 2), gold), abs=1e-6)
    assert served == pytest.approx(calibration_error(softmax(logits), gold), abs=1e-6)
    assert printed[0] == f"toy: accuracy {accuracy:.4f} (36 rows)"
    page = "\n".join(bundle_records.suite(tmp_path / "suite", tmp_path))
    assert f"| `tiny-nli` | {found['version']} | {100 * accuracy:.1f} |" in page


def test_a_classifier_of_sentiment_chooses_between_two_sides(
    tmp_path: Path, pipeline: BuiltParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [Example((text,), i % 2) for i, text in enumerate(TEXTS)]
    monkeypatch.setitem(sets.POLARITY, "dev", {"toy": lambda _: texts})
    build_bundle(
        tmp_path, pipeline, name="tiny-five", kind="classification", labels=sst.FIVE, task="sst5"
    )
    folder = tmp_path / "tiny-five"
    (tmp_path / "trees").mkdir()
    trees = "".join(f"({i % 5} (2 dogs) ({i % 5} wash))\n" for i in range(10))
    (tmp_path / "trees/dev.txt").write_text(trees)
    printed = recorded(folder, pipeline, tmp_path)
    with open_folder(folder, str(pipeline.folder)) as model:
        found = softmax(model.logits(texts))
    sides = found[:, 3:].sum(1) > found[:, :2].sum(1)
    expected = (sides == [one.label for one in texts]).mean()
    assert printed[-1] == f"toy: negative or positive {expected:.4f} (6 rows)"
    assert [line.partition(":")[0] for line in printed[:-1]] == ["sst5"] * 3


def test_embeddings_are_scored_beside_their_own_words(
    tmp_path: Path, exported: Path, pipeline: BuiltParser
) -> None:
    pairs = [Example((a, b), 5.0 * (a == b)) for a in KNOWN for b in KNOWN]
    rows = [{"a": one.texts[0], "b": one.texts[1], "score": one.label} for one in pairs]
    sick = lines(*({**row, "label": "neutral"} for row in rows))
    files = {"stsb/dev.jsonl": lines(*rows), "sick/train.jsonl": sick, "sick/dev.jsonl": sick}
    write(tmp_path, files)

    def cosines(vectors: Sequence[np.ndarray]) -> np.ndarray:
        unit = np.array(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)
        found: np.ndarray = (unit[0::2] * unit[1::2]).sum(axis=1)
        return found

    texts = [text for one in pairs for text in one.texts]
    with open_folder(exported, str(pipeline.folder)) as model:
        own = cosines(list(model.embed(texts)))
    figures = recorded(exported, pipeline, tmp_path, rows=100)
    expected = spearmanr(own, [one.label for one in pairs]).statistic
    assert figures[0] == f"STS-B: spearman {expected:.4f} (36 rows)"
    assert figures[1] == "STS-B related above unrelated: AUC 1.0000 (36 rows)"
    assert figures[2].startswith("STS-B random pairs: mean cosine")
    assert figures[3].startswith("SICK train+dev: spearman")
    assert not (tmp_path / "suite").exists()  # a part of the sets is not recorded
    assert [line.partition(":")[0] for line in figures[4:]] == 4 * ["mean of its word vectors"]


def test_word_means_are_those_of_the_table(toy: TrainedModel, exported: Path) -> None:
    model = copy.deepcopy(toy.model).eval()
    round_weights(model)
    texts = ["word1 word2 word3", "word4"]
    words = [text.split() for text in texts]
    vocab = read(exported).vocab
    ids = [torch.from_numpy(vocab.sentence(one, np.arange(len(one))).ids)[None] for one in words]
    with torch.no_grad():
        expected = [model.embedding(one)[0].mean(0).numpy() for one in ids]
    np.testing.assert_allclose(word_means(read(exported))(texts), expected, atol=1e-6)


def test_what_is_no_bundles_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no bundle's folder"):
        suite.command("ms-san-sst2", results=tmp_path)
