"""Records of whole bundles: the page draws none that measured another version than the bundle that is there."""

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.training.errors import ConfigError
from tests.process import ROOT
from tools import bundle_records

TRANSFER = {
    **{"model": "toy", "version": "1" * 12, "dimension": 3},
    **{"accuracy": {"cr": 0.8}, "similarity": {"stsb dev spearman": 0.7}},
    **{"sentences_per_second": 200.0, "minilm_sentences_per_second": 100.0},
}
SUITE = {
    **{"model": "toy", "version": "1" * 12, "split": "dev"},
    "figures": [
        {"dataset": name, "metric": "accuracy", "value": value, "rows": 9}
        for name, value in (("A", 0.9), ("mean of its word vectors: A", 0.5))
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
    card.write_text(json.dumps({"version": "1" * 12}))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "record", "rows"),
    [
        ("transfer", TRANSFER, ["| toy | {} | 3 | 80.0 |  |  |  |  | 0.700 |  | 200 | 100 |"]),
        (
            *("suite", SUITE),
            ["| `toy` | {} | 90.0 |", "| `toy`, mean of its word vectors | {} | 50.0 |"],
        ),
    ],
)
def test_a_record_is_drawn_with_the_version_of_the_bundle_that_is_there(
    folder: Path, name: str, record: dict[str, Any], rows: list[str]
) -> None:
    unversioned = {key: value for key, value in record.items() if key != "version"}
    for one, version in ((record, "1" * 12), (unversioned, "not recorded: perhaps an earlier one")):
        page = lines(folder, name, one)
        assert all(row.format(version) in page for row in rows)
    with pytest.raises(ConfigError, match=r"toy measured version 2{12}, .*toy is 1{12}"):
        lines(folder, name, {**record, "version": "2" * 12})


def test_a_bundle_that_is_not_there_is_named_with_the_version_that_was_measured(
    folder: Path,
) -> None:
    row = "| else | 222222222222 | 3 |"
    assert row in lines(folder, "transfer", {**TRANSFER, "model": "else", "version": "2" * 12})


def test_the_records_of_this_repository_are_of_its_bundles() -> None:
    records = [*ROOT.glob("results/transfer/*.json"), *ROOT.glob("results/suite/*.json")]
    assert records
    for file in records:
        bundle_records.version(json.loads(file.read_text()), ROOT / "bundles")
