"""Records of whole bundles: the page draws none that measured another version than the bundle that is there."""

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.training.errors import ConfigError
from tools import bundle_records

TRANSFER = {
    "model": "toy",
    "version": "111111111111",
    "dimension": 3,
    "accuracy": {"cr": 0.8},
    "similarity": {"stsb dev spearman": 0.7},
    "sentences_per_second": 200.0,
    "minilm_sentences_per_second": 100.0,
}
SUITE = {
    "model": "toy",
    "version": "111111111111",
    "split": "dev",
    "figures": [
        {"dataset": "A", "metric": "accuracy", "value": 0.9, "rows": 9},
        {"dataset": "mean of its word vectors: A", "metric": "accuracy", "value": 0.5, "rows": 9},
    ],
}


def lines(folder: Path, name: str, record: dict[str, Any]) -> str:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "toy.json").write_text(json.dumps(record))
    bundles = folder / "bundles"
    if name == "transfer":
        return "\n".join(bundle_records.transfer(folder / name, bundles, {"train": 1, "test": 2}))
    return "\n".join(bundle_records.suite(folder / name, bundles))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    card = tmp_path / "bundles" / "toy" / "card.json"
    card.parent.mkdir(parents=True)
    card.write_text(json.dumps({"version": "111111111111"}))
    return tmp_path


def test_a_record_of_the_bundle_is_drawn_with_its_version(folder: Path) -> None:
    row = "| toy | 111111111111 | 3 | 80.0 |  |  |  |  | 0.700 |  | 200 | 100 |"
    assert row in lines(folder, "transfer", TRANSFER)
    page = lines(folder, "suite", SUITE)
    assert "| on dev | version | A, accuracy |" in page
    assert "| `toy` | 111111111111 | 90.0 |" in page
    assert "| `toy`, mean of its word vectors | 111111111111 | 50.0 |" in page


@pytest.mark.parametrize(("name", "record"), [("transfer", TRANSFER), ("suite", SUITE)])
def test_a_record_of_another_version_is_refused(
    folder: Path, name: str, record: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=r"toy measured version 2{12}, .*toy is 1{12}"):
        lines(folder, name, {**record, "version": "222222222222"})


@pytest.mark.parametrize(("name", "record"), [("transfer", TRANSFER), ("suite", SUITE)])
def test_a_record_without_a_version_is_marked(
    folder: Path, name: str, record: dict[str, Any]
) -> None:
    unversioned = {key: value for key, value in record.items() if key != "version"}
    assert "toy" in (page := lines(folder, name, unversioned))
    assert "| not recorded: perhaps an earlier one |" in page


def test_a_bundle_that_is_not_there_is_named_with_the_version_that_was_measured(
    folder: Path,
) -> None:
    row = "| else | 222222222222 | 3 |"
    assert row in lines(folder, "transfer", {**TRANSFER, "model": "else", "version": "2" * 12})
