"""docs/data.md: its conversion makes the files that the loaders read."""

import json
import sys
from pathlib import Path

from heedful.training import tasks
from tests.process import ROOT, output
from tests.writing import write
from tools.parser.soft_trees import TEXTS

tasks.add("tools.tasks")


def test_the_conversion_makes_every_file_that_is_read_as_json_lines_alone(tmp_path: Path) -> None:
    """Of every official file that it reads, of a few rows."""
    data = tmp_path / "data"
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
    write(data, files)
    output(sys.executable, ROOT / "scripts/json-lines", cwd=tmp_path, PYTHONPATH=str(ROOT))
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
