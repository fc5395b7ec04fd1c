"""docs/data.md: every file and address that a loader asks for is there, and its conversion works."""

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.training import tasks, vectors
from heedful.training.data_folder import DEFAULT, OFFICIAL, PAGE, VARIABLE
from heedful.training.errors import DataMissing
from tests.process import ROOT
from tools.parser import treebank
from tools.parser.soft_trees import TEXTS

TEXT = (ROOT / PAGE).read_text(encoding="utf-8")


def _expanded(name: str) -> list[str]:
    """ "a/{b,c}.d" -> a/b.d, a/c.d."""
    parts = re.split(r"\{([^}]*)\}", name)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(one) for one in itertools.product(*choices)]


NAMED = {name for span in re.findall(r"`([^`\n]+)`", TEXT) for name in _expanded(span)}


def _named(file: str) -> bool:
    """Whether the page names the file, alone or with its folder, or what the folder holds."""
    folder, _, name = file.rpartition("/")
    bare = {one.rpartition("/")[2] for one in NAMED}  # "or the same names without the folder"
    inside = name in NAMED and f"{folder}/" in NAMED  # "alone or in `trec/`"
    return file in NAMED | bare or inside or any(one.startswith(f"{file}/") for one in NAMED)


def test_it_says_where_the_folder_is() -> None:
    assert f"`--data`, else the environment variable `{VARIABLE}`, else `{DEFAULT}/`" in TEXT


def test_every_task_is_named() -> None:
    names = {name for name in tasks.TASKS if ":" not in name}  # cr:0 is a fold of cr
    assert names - NAMED == set()


@pytest.mark.parametrize("dataset", OFFICIAL)
def test_every_address_is_there(dataset: str) -> None:
    assert OFFICIAL[dataset].split()[0] in TEXT


def _asked_for(folder: Path) -> set[str]:
    """The files that the errors of all loaders name on an empty folder."""
    readers: list[Callable[[Path], object]] = [
        source.read
        for task in tasks.TASKS.values()
        for source in (*task.train, task.dev, task.test, *task.background)
        if (task.name, source) != ("negation", task.dev)  # in the repository
    ]
    readers += [lambda data: treebank.sentences(data, "train")]
    readers += [lambda data: vectors.source("wordbridge", data)]
    found = set()
    for read in readers:
        with pytest.raises(DataMissing) as missing:
            read(folder)
        said = re.search(r"holds no (.*?) \(or the same with \.gz\)", str(missing.value))
        assert said, missing.value
        found |= set(said[1].split(" or "))
    return found | set(TEXTS)


def test_every_file_that_a_loader_asks_for_is_named(tmp_path: Path) -> None:
    asked = _asked_for(tmp_path)
    assert len(asked) > 30
    assert [file for file in sorted(asked) if not _named(file)] == []


def _official(folder: Path) -> None:
    """Every official file that the conversion reads, of a few rows."""
    tsv = "sentence1\tsentence2\tgold_label\nA man sleeps.\tA man is asleep.\tentailment\n"
    pair = {"sentence1": "A man sleeps.", "sentence2": "Nobody sleeps.", "gold_label": "neutral"}
    files = {
        "snli_1.0/snli_1.0_train.jsonl": json.dumps(pair),
        "multinli_1.0/multinli_1.0_train.jsonl": json.dumps(pair),
        "stsbenchmark/sts-train.csv": "main\tx\ty\t1\t4.0\tA man sleeps.\tA man is asleep.",
        "trees/train.txt": "(3 (2 A) (3 (3 good) (2 film)))",
        "train_5500.label": "DESC:manner How did he leave ?\n" * 10,
        "aclImdb/train/neg/0_1.txt": "dull",
        "aclImdb/train/pos/0_9.txt": "fine",
    }
    for part in ("original", "revised_combined"):
        files[f"counterfactually-augmented-data/NLI/{part}/train.tsv"] = tsv
    for part in ("base", "contrast", "edit_other", "edit_premise"):
        files[f"Textual-Entailment-New-Protocols/data/{part}/train.tsv"] = tsv
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_the_conversion_makes_every_file_that_is_read_as_json_lines_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    _official(data)
    subprocess.run(
        [sys.executable, ROOT / "scripts/json-lines"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        check=True,
    )
    made = {file.relative_to(data).as_posix(): file for file in data.glob("*/*.jsonl")}
    assert set(TEXTS) - {"nli_semi_automatic_wiki/train.jsonl"} <= set(made)
    for name in ("trec/train", "imdb/train"):
        rows = [json.loads(line) for line in made[f"{name}.jsonl"].read_text().splitlines()]
        assert all(set(row) == {"text", "label"} for row in rows)
    counterfactual = tasks.get("nli").train[2:]
    assert [len(source.read(data)) for source in counterfactual] == [1, 1]
    (data / "train_5500.label").unlink()  # from now on the made file is read
    trec = tasks.get("trec")
    assert len(trec.train[0].read(data)) + len(trec.dev.read(data)) == 10
