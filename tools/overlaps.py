"""overlaps: how many test rows of a task stand in its train or dev split."""

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
"""The tasks of the papers' tables, then those that the shipped models learned from."""
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
    """Test rows; those that train or dev holds, without case and white space, and by letters and digits alone; and the
    rows of train and dev that test holds.

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
    """Texts of SST's train trees, and rows of its test split, that stand anywhere in SUBJ.

    Letters and digits are compared: the two are not tokenised alike. Raises DataMissing, DataError.
    """
    subj, sst = tasks.get("subj"), tasks.get("sst5")
    sources = (*subj.train, subj.dev, subj.test)
    held = {_letters(row.texts) for source in sources for row in source.read(data)}
    nodes = {_letters(row.texts) for source in sst.train for row in source.read(data)}
    test = [_letters(row.texts) for row in sst.test.read(data)]
    return {"train": len(nodes & held), "test": sum(text in held for text in test)}


def _texts(row: Example) -> tuple[str, ...]:
    return text_key(text.lower() for text in row.texts)


def _letters(texts: Iterable[str]) -> tuple[str, ...]:
    """Each text's letters and digits, in lower case, without SST's brackets."""
    plain = (text.lower().replace("-lrb-", "").replace("-rrb-", "") for text in texts)
    return tuple(re.sub(r"[^a-z0-9]", "", text) for text in plain)
