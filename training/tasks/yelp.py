"""Yelp reviews and their stars, 1 to 5. Split by our seed: there is no official split.

Reads the official `yelp_academic_dataset_review.json` (a review a line: `text`, `stars`) or JSON lines.
"""

from pathlib import Path

from heedful.training.data_folder import find, records
from heedful.training.tasks.base import Example
from heedful.training.tasks.labelled import examples
from heedful.training.tasks.splits import ten_parts

LABELS = ("1", "2", "3", "4", "5")
LICENCE = "Yelp Dataset Terms of Use"


def read(data: Path) -> list[Example]:
    """Every example. Raises DataMissing, DataError."""
    official = "yelp_academic_dataset_review.json"
    candidates = (official, f"yelp/{official}", "yelp_10k/all.jsonl")
    path = find(data, candidates, dataset="yelp")
    rows = (
        (str(int(record["stars"] if "stars" in record else record["label"])), record["text"])
        for record in records(path)
    )
    return examples(path, rows, LABELS)


TASKS = (ten_parts("yelp", LABELS, LICENCE, "the 10,000 reviews at hand, or all of Yelp's", read),)
