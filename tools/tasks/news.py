"""News Aggregator (Gasparetti 2016): the category of a headline. Split by our seed: there is no official split.

Reads the official `newsCorpora.csv` (tabs, no header), the `uci-news-aggregator.csv` of Kaggle or JSON lines.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from heedful.training.data_folder import find, lines, read_each, text_of
from heedful.training.errors import DataError
from heedful.training.tasks.base import Example
from tools.tasks.folds import ten_parts
from tools.tasks.labelled import UNSTATED, examples, json_lines

NAMES = {"b": "business", "e": "entertainment", "m": "health", "t": "technology"}
COLUMNS = ("ID", "TITLE", "URL", "PUBLISHER", "CATEGORY", "STORY", "HOSTNAME", "TIMESTAMP")
NOTE = (
    "422,419 headlines, or the first 6,366 of them, where health is rare; headlines of one story "
    "stand in several parts"
)


def _tabs(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines(path), 1):
        cells = line.split("\t")
        if len(cells) != len(COLUMNS):
            raise DataError(f"{path.name}:{number}: {len(cells)} cells, not {len(COLUMNS)}")
        yield cells[COLUMNS.index("CATEGORY")], cells[COLUMNS.index("TITLE")]


def _commas(path: Path) -> Iterator[tuple[str, str]]:
    rows = csv.DictReader(lines(path))
    return read_each(path, rows, lambda row: (row["CATEGORY"], text_of(row, "TITLE")), first=2)


def read(data: Path) -> list[Example]:
    """Every example. Raises DataMissing, DataError."""
    candidates = ("newsCorpora.csv", "uci-news-aggregator.csv", "news_aggregator_subset/all.jsonl")
    path = find(data, candidates, dataset="news")
    layout = _tabs if "newsCorpora" in path.name else _commas
    rows = json_lines(path) if ".jsonl" in path.name else layout(path)
    return examples(path, rows, tuple(NAMES.values()), NAMES)


TASKS = (ten_parts("news", tuple(NAMES.values()), UNSTATED, NOTE, read),)
