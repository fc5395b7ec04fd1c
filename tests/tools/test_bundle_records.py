"""Records of whole bundles: the page draws none that measured another version than the bundle that is there."""

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.training.errors import ConfigError
from tests.process import ROOT
from tests.training.test_tasks import write
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
    """The rows of a record, beside a bundle "toy" of version 111111111111."""
    card = json.dumps({"version": "1" * 12})
    write(folder, {f"{name}/toy.json": json.dumps(record), "bundles/toy/card.json": card})
    bundles = folder / "bundles"
    if name == "transfer":
        return "\n".join(bundle_records.transfer(folder / name, bundles, {"train": 1, "test": 2}))
    return "\n".join(bundle_records.suite(folder / name, bundles))


@pytest.mark.parametrize(
    ("name", "record", "rows"),
    [
        ("transfer", TRANSFER, ["| toy | {} | 3 | 80.0 |  |  |  |  | 0.700 |  | 200 | 100 |"]),
        (
            "suite",
            SUITE,
            ["| `toy` | {} | 90.0 |", "| `toy`, mean of its word vectors | {} | 50.0"],
        ),
    ],
)
def test_a_record_is_drawn_with_the_version_of_the_bundle_that_is_there(
    tmp_path: Path, name: str, record: dict[str, Any], rows: list[str]
) -> None:
    unversioned = {key: value for key, value in record.items() if key != "version"}
    for one, version in ((record, "1" * 12), (unversioned, "not recorded: perhaps an earlier one")):
        page = lines(tmp_path, name, one)
        assert all(row.format(version) in page for row in rows)
    with pytest.raises(ConfigError, match=r"toy measured version 2{12}, .*toy is 1{12}"):
        lines(tmp_path, name, {**record, "version": "2" * 12})
    gone = lines(tmp_path, name, {**record, "model": "else", "version": "2" * 12})
    assert rows[0].replace("toy", "else").format("2" * 12) in gone


def test_the_records_of_this_repository_are_of_its_bundles() -> None:
    records = [*ROOT.glob("results/transfer/*.json"), *ROOT.glob("results/suite/*.json")]
    assert records
    for file in records:
        bundle_records.version(json.loads(file.read_text()), ROOT / "bundles")
