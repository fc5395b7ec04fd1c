"""Yelp reviews and their stars, 1 to 5. Split by our seed: there is no official split.

Reads the official `yelp_academic_dataset_review.json` (a review a line: `text`, `stars`) or JSON lines.
"""

from pathlib import Path
from typing import Any

from heedful.training.data_folder import find, read_each, records, text_of
from heedful.training.tasks.base import Example
from tools.tasks.folds import ten_parts
from tools.tasks.labelled import examples

LABELS = ("1", "2", "3", "4", "5")
LICENCE = "Yelp Dataset Terms of Use"


def read(data: Path) -> list[Example]:
    """Every example. Raises DataMissing, DataError."""
    official = "yelp_academic_dataset_review.json"
    candidates = (official, f"yelp/{official}", "yelp_10k/all.jsonl")
    path = find(data, candidates, dataset="yelp")
    return examples(path, read_each(path, records(path), _row), LABELS)


def _row(record: dict[str, Any]) -> tuple[str, str]:
    stars = record["stars"] if "stars" in record else record["label"]
    return str(int(stars)), text_of(record, "text")


TASKS = (ten_parts("yelp", LABELS, LICENCE, "the 10,000 reviews at hand, or all of Yelp's", read),)
