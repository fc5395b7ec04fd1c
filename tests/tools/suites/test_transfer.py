"""The measures of frozen embeddings, on data whose answer is known: one dimension a word."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from heedful.text.arrays import Floats
from tools.suites import transfer

WORDS = ("good", "bad", "film", "who", "where", "how")
FOLDED = ("cr", "mpqa", "subj")


def embed(texts: Sequence[str]) -> Floats:
    """(N, 6) how often each word occurs in a text."""
    return np.array([[text.split().count(word) for word in WORDS] for text in texts], np.float32)


def blind(texts: Sequence[str]) -> Floats:
    return np.ones((len(texts), 2), np.float32)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    files = {"CR/custrev": ("neg", "pos"), "MPQA/mpqa": ("neg", "pos")}
    files["SUBJ/subj"] = ("objective", "subjective")
    for name, (first, second) in files.items():
        (tmp_path / name).parent.mkdir()
        Path(f"{tmp_path / name}.{first}").write_text("bad film\n" * 60)
        Path(f"{tmp_path / name}.{second}").write_text("good film\n" * 40)
    questions = "HUM:ind who film\nLOC:city where film\nNUM:dist how film\n" * 20
    (tmp_path / "train_5500.label").write_text(questions)
    (tmp_path / "TREC_10.label").write_text(questions)
    (tmp_path / "trees").mkdir()
    trees = "(4 (4 good) (2 film))\n(0 (0 bad) (2 film))\n" * 20
    for split in ("train", "dev", "test"):
        (tmp_path / "trees" / f"{split}.txt").write_text(trees)
    return tmp_path


def test_vectors_that_tell_and_vectors_that_do_not(data: Path) -> None:
    told = transfer.accuracies(embed, data)
    assert told == dict.fromkeys((*FOLDED, "trec", "sst2"), 1.0)
    untold = transfer.accuracies(blind, data)
    commoner = 0.6  # share of the commoner label
    assert {name: untold[name] for name in FOLDED} == dict.fromkeys(FOLDED, commoner)
    assert untold["trec"] == pytest.approx(1 / 3)
    assert untold["sst2"] == 0.5
