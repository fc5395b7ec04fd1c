"""overlaps: counts the test rows of each task that are also in its train or dev split."""

import re
from collections.abc import Iterable
from pathlib import Path

import typer

from heedful.cli.options import DATA, Data
from heedful.files.atomic import write_json
from heedful.training import tasks
from heedful.training.labelled_texts import text_key
from heedful.training.tasks.base import Example, Task
from tools.tasks.folds import FOLDS

COUNTED = (
    *("imdb", "mnli", "mnli-matched", "news", "r8", "sick-relatedness", "snli", "sst2", "sst5"),
    *("trec", "yelp"),
    *("sentiment-student", "sst2-student", "sst5-student", "trec-taught", "nli-student"),
    "embed",
)
"""The tasks of the papers' tables, then the tasks of the shipped models."""
FOLDED = ("cr", "mpqa", "subj")
RECORD = Path("results/overlaps.json")


def command(data: Data = DATA) -> None:
    """Write results/overlaps.json, which `python -m tools report` prints."""
    counts = {}
    for name in COUNTED:
        counts[name] = overlap(tasks.get(name), data)
        typer.echo(f"{name}: {counts[name]}")
    for name in FOLDED:
        folds = [overlap(tasks.get(f"{name}:{fold}"), data) for fold in range(FOLDS)]
        counts[name] = {key: sum(fold[key] for fold in folds) for key in folds[0]}
        typer.echo(f"{name}: {counts[name]}")
    write_json(RECORD, {"tasks": counts, "sst_in_subj": sst_in_subj(data)})


def overlap(task: Task, data: Path) -> dict[str, int]:
    """Counts of test rows, of those in train or dev (compared without case and white space, and by letters and digits
    alone), and of the rows of train and dev that are in test.

    A pair counts in its order, whatever the label. An embedding learns from single texts and is tested on pairs of its
    dev split: there each text counts as a row. Raises DataMissing, DataError.
    """
    learned = [row for source in task.train for row in source.read(data)]
    if task.kind == "embedding":
        test = [Example((text,), 0) for row in task.dev.read(data) for text in row.texts]
    else:
        learned += task.dev.read(data)
        test = task.test.read(data)
    plain_learned, plain_test = list(map(_texts, learned)), list(map(_texts, test))
    seen, tested = set(plain_learned), set(plain_test)
    by_letters = {_letters(row.texts) for row in learned}
    return {
        "rows": len(test),
        "test_seen": sum(texts in seen for texts in plain_test),
        "letters_seen": sum(_letters(row.texts) in by_letters for row in test),
        "train_in_test": sum(texts in tested for texts in plain_learned),
    }


def sst_in_subj(data: Path) -> dict[str, int]:
    """The number of texts of SST's train trees, and of rows of its test split, that are in SUBJ.

    Only letters and digits are compared, because the two sets are tokenised differently. Raises DataMissing, DataError.
    """
    subj, sst = tasks.get("subj"), tasks.get("sst5")
    sources = (*subj.train, subj.dev, subj.test)
    in_subj = {_letters(row.texts) for source in sources for row in source.read(data)}
    nodes = {_letters(row.texts) for source in sst.train for row in source.read(data)}
    test = [_letters(row.texts) for row in sst.test.read(data)]
    return {"train": len(nodes & in_subj), "test": sum(text in in_subj for text in test)}


def _texts(row: Example) -> tuple[str, ...]:
    return text_key(text.lower() for text in row.texts)


def _letters(texts: Iterable[str]) -> tuple[str, ...]:
    """Each text's letters and digits, in lower case, without SST's brackets."""
    plain = (text.lower().replace("-lrb-", "").replace("-rrb-", "") for text in texts)
    return tuple(re.sub(r"[^a-z0-9]", "", text) for text in plain)
