"""`make mteb`: two of mteb's tasks over local dev data, by the lines and the model that docs/library.md shows.

It needs mteb, and HEEDFUL_DATA with STS-B and IMDB. It writes the table of docs/library.md.
"""

import re
import sys
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

import mteb
from datasets import Dataset, DatasetDict

import heedful
from heedful.training.data_folder import data_folder
from heedful.training.tasks import stsb
from heedful.training.tasks.base import Example
from tools.tasks import imdb

PAGE = Path(__file__).parents[1] / "docs/library.md"
CODE = re.compile(r"```py\n(.*?)```", re.DOTALL)
TABLE = re.compile(r"(<!-- written by make mteb -->\n)(.*?)(<!-- end -->)", re.DOTALL)
MOST = 500
"""Reviews to classify, drawn at random with seed 0."""


def main() -> int:
    """Exit status 0 if STS-B's score equals the one on the bundle's card."""
    page = PAGE.read_text(encoding="utf-8")
    [code] = [block for block in CODE.findall(page) if "import mteb" in block]
    tasks = [sts(), reviews()]
    names: dict[str, Any] = {"tasks": tasks}
    exec(code, names)
    scores = {result.task_name: result.get_score() for result in names["results"].task_results}
    with heedful.load("ms-san-embed") as model:
        card = model.card
    int8 = card.int8
    assert int8 is not None
    lines = [f"| task of mteb {version('mteb')} | local rows | its main score |", "|---|---|---|"]
    for task in tasks:
        name, metric = task.metadata.name, task.metadata.main_score
        lines.append(f"| {name} | {len(task.dataset['test'])} | {metric} {scores[name]:.4f} |")
    lines += ["", f"The card of bundle {card.version} says {int8.int8:.4f} of the same pairs."]
    table = "\n" + "\n".join(lines) + "\n\n"
    PAGE.write_text(TABLE.sub(rf"\g<1>{table}\g<3>", page), encoding="utf-8")
    print(table)  # noqa: T201
    return int(abs(scores["STSBenchmark"] - int8.int8) > 1e-6)


def sts() -> Any:
    rows = stsb.DEV.read(data_folder())
    first, second = zip(*(row.texts for row in rows), strict=True)
    scores = [row.label for row in rows]
    columns = {"sentence1": first, "sentence2": second, "score": scores}
    return loaded("STSBenchmark", test=Dataset.from_dict(columns))


def reviews() -> Any:
    def columns(rows: list[Example]) -> Dataset:
        return Dataset.from_dict(
            {"text": [row.texts[0] for row in rows], "label": [int(row.label) for row in rows]}
        )

    dev = Random(0).sample(imdb.DEV(data_folder()), MOST)
    return loaded("ImdbClassification", train=columns(imdb.TRAIN(data_folder())), test=columns(dev))


def loaded(name: str, **splits: Dataset) -> Any:
    """mteb's task with these rows in place of those on the hub."""
    task = mteb.get_task(name)
    task.dataset, task.data_loaded = DatasetDict(splits), True
    return task


if __name__ == "__main__":
    sys.exit(main())
