"""The part of docs/notes/results.md about bundles that were scored whole: frozen embeddings and the suite."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.training.errors import ConfigError
from tools.markdown import figure
from tools.markdown import table as markdown_table
from tools.suites.figures import WORDS

TASKS = ("cr", "mpqa", "subj", "sst2", "trec")
SIMILARITIES = ("stsb dev spearman", "sick test pearson")


def transfer(folder: Path, bundles: Path, in_subj: dict[str, int]) -> Iterator[str]:
    """Lines of the table of frozen embeddings. Raises ConfigError as `version` does."""
    yield "## Frozen embeddings\n"
    yield (
        "`python -m tools transfer MODEL`: logistic regression on frozen embeddings, accuracy (CR, MPQA and SUBJ in\n"
        "ten folds); cosine similarity without training; sentences of SUBJ (23 words) a second, one thread, and\n"
        "MiniLM's in the same run, in torch and bfloat16. *Version* is the bundle's that was measured.\n"
        f"SUBJ holds {in_subj['train']:,} texts of SST's train trees, whose labels `disan-sst5` has learned, and\n"
        f"{in_subj['test']:,} of SST's test sentences, on which it is measured above.\n"
    )
    rows = (
        (
            *(record["model"], version(record, bundles), record["dimension"]),
            *(figure(record["accuracy"].get(task), "accuracy") for task in TASKS),
            *(figure(record["similarity"].get(name), "") for name in SIMILARITIES),
            f"{record['sentences_per_second']:.0f}",
            f"{record['minilm_sentences_per_second']:.0f}",
        )
        for record in _records(folder)
    )
    headings = ("model", "version", "values", *TASKS, *SIMILARITIES, "sentences/s", "MiniLM's")
    yield from markdown_table(headings, rows)


def suite(folder: Path, bundles: Path) -> Iterator[str]:
    """Lines of a table for each group of records with the same sets. Raises ConfigError as `version` does."""
    rows: dict[tuple[str, ...], list[list[str]]] = {}
    for record in _records(folder):
        name = f"`{record['model']}`"
        for prefix, row in (("", name), (WORDS, f"{name}, mean of its word vectors")):
            figures = [
                each
                for each in record["figures"]
                if each["dataset"].startswith(WORDS) == bool(prefix)
            ]
            if figures:
                columns = [
                    f"{each['dataset'].removeprefix(WORDS)}, {each['metric']}" for each in figures
                ]
                values = [figure(each["value"], each["metric"]) for each in figures]
                cells = [row, version(record, bundles), *values]
                rows.setdefault((record["split"], *columns), []).append(cells)
    if rows:
        yield "## The suite\n"
        yield (
            "`python -m tools suite BUNDLE`: every set of a bundle's kind. ECE is the expected calibration error\n"
            "over 15 bins. CR, MPQA and SUBJ are in ten folds.\n"
        )
    for (split, *columns), group in rows.items():
        yield from markdown_table((f"on {split}", "version", *columns), group)


def version(record: dict[str, Any], bundles: Path) -> str:
    """The cell of the version that a record measured.

    Raises ConfigError for another version than that of the bundle in `bundles`.
    """
    name, measured = record["model"], record.get("version")
    card = bundles / name / "card.json"
    if not card.is_file():
        return measured or ""
    if not measured:
        return "not recorded: perhaps an earlier one"
    shipped = json.loads(card.read_text(encoding="utf-8"))["version"]
    if measured != shipped:
        raise ConfigError(
            f"the record of {name} measured version {measured}, {card.parent} is {shipped}: measure it again "
            f"(python -m tools transfer, python -m tools suite --results results), or delete the record"
        )
    return str(measured)


def _records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))]
