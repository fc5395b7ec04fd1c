"""`heedful tune`: what it reads, and what it makes of an embedding."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from heedful.cli.errors import CommandError
from heedful.cli.texts import Columns, Dialect, Source
from heedful.cli.tune import read_pairs
from heedful.training.tasks.base import UNLABELLED, Example


def source(folder: Path, rows: Sequence[object]) -> Source:
    file = folder / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = Columns("q", second="r", whole=True, pair_options="--columns")
    return Source(str(file), None, columns, Dialect())


def test_a_pair_has_a_score_or_a_third_text(tmp_path: Path) -> None:
    rows = [{"q": "what", "r": "that", "n": "no", "s": 0.5}, {"q": " ", "r": "x", "n": "y", "s": 1}]
    found = source(tmp_path, rows)
    assert list(read_pairs(found, None, None)) == [Example(("what", "that"), UNLABELLED)]
    assert list(read_pairs(found, None, "s")) == [Example(("what", "that"), 0.5)]
    assert list(read_pairs(found, "n", None)) == [Example(("what", "that", "no"), UNLABELLED)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"q": "a", "r": "b", "s": "high"}, r"pairs\.jsonl:1: the score is 'high': give a number"),
        ({"q": "a", "r": "b", "s": "nan"}, "the score is nan"),
        ({"q": "a", "r": "b"}, "no 's': the row has q, r"),
        ({"q": "a", "s": 1}, "no 'r': .*set --columns"),
    ],
)
def test_a_row_that_is_no_pair_is_named(tmp_path: Path, row: object, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        list(read_pairs(source(tmp_path, [row]), None, "s"))
