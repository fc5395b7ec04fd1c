"""The record of frozen embeddings: cosines, speeds and the version that was measured."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from heedful.text.arrays import Floats
from tools import transfer

WORDS = ("good", "bad", "film")


def embed(texts: Sequence[str]) -> Floats:
    """(N, 3) how often each word occurs in a text."""
    return np.array([[text.split().count(word) for word in WORDS] for text in texts], np.float32)


def test_cosines_against_the_gold_scores(tmp_path: Path) -> None:
    pairs = [("good", "good film", 4.0), ("good", "good", 5.0), ("good", "bad", 1.0)]
    rows = [{"a": a, "b": b, "score": score, "label": "neutral"} for a, b, score in pairs]
    for name in ("stsb/dev.jsonl", "sick/test.jsonl"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = transfer.similarities(embed, tmp_path)
    assert found["stsb dev spearman"] == pytest.approx(1)
    expected = np.corrcoef([np.sqrt(0.5), 1, 0], [4, 5, 1])[0, 1]
    assert found["sick test pearson"] == pytest.approx(expected, abs=1e-6)
