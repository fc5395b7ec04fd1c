"""How many test rows of a task stand in its train or dev split: `python -m tools.overlaps` counts them."""

import re
from pathlib import Path

import typer

from heedful.cli.options import DATA, Data
from heedful.files.atomic import write_json
from heedful.training import tasks
from heedful.training.labelled_texts import same
from heedful.training.tasks.base import Example, Task

COUNTED = ("imdb", "mnli", "mnli-matched", "r8", "sick-relatedness", "snli", "sst2", "sst5", "trec")
RECORD = Path("results/overlaps.json")


def overlap(task: Task, data: Path) -> dict[str, int]:
    """Test rows, those of them whose texts, without case and white space, stand in train or dev, and the rows of these
    that stand in test.

    A pair counts in its order, whatever the label. Raises DataMissing, DataError.
    """
    learned = [_texts(row) for source in (*task.train, task.dev) for row in source.read(data)]
    test = [_texts(row) for row in task.test.read(data)]
    seen, asked = set(learned), set(test)
    return {
        "rows": len(test),
        "test_seen": sum(texts in seen for texts in test),
        "train_in_test": sum(texts in asked for texts in learned),
    }


def sst_in_subj(data: Path) -> dict[str, int]:
    """Texts of SST's train trees, and rows of its test split, that stand anywhere in SUBJ.

    Letters and digits are compared: the two are not tokenised alike. Raises DataMissing, DataError.
    """
    subj, sst = tasks.get("subj"), tasks.get("sst5")
    held = {_letters(row) for one in (*subj.train, subj.dev, subj.test) for row in one.read(data)}
    nodes = {_letters(row) for source in sst.train for row in source.read(data)}
    test = [_letters(row) for row in sst.test.read(data)]
    return {"train": len(nodes & held), "test": sum(text in held for text in test)}


def _letters(row: Example) -> str:
    plain = row.texts[0].lower().replace("-lrb-", "").replace("-rrb-", "")
    return re.sub(r"[^a-z0-9]", "", plain)


def _texts(row: Example) -> tuple[str, ...]:
    return same(text.lower() for text in row.texts)


def command(data: Data = DATA) -> None:
    """Write results/overlaps.json, which `python -m tools report` prints."""
    found = {}
    for name in COUNTED:
        found[name] = overlap(tasks.get(name), data)
        typer.echo(f"{name}: {found[name]}")
    write_json(RECORD, {"tasks": found, "sst_in_subj": sst_in_subj(data)})
