"""report: docs/results.md and docs/notes/results.md from the shipped cards and the records of results/."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.files.atomic import write_file
from tools import bundle_records, paper_scores, paper_tables, papers, reproduced
from tools.markdown import difference, figure, named, run_names
from tools.markdown import table as markdown_table
from tools.options import Results
from tools.reproduced import standard_error

HEAD = """# Results

Written by `python -m tools report` from `bundles/*/card.json` and `results/`; not edited by hand. Test scores were
measured through the service. Accuracies are in percent. [notes/results.md](notes/results.md) has how each row was run:
data, deviations from the paper, weights, errors, commits, and how often a test split was evaluated.
"""
PAPERS = """## The papers' tables

On test, but for MultiNLI (its matched dev split); ± is the standard deviation over the runs. The papers trained on all
of the data; *train rows* are those that were here. A table that two papers have stands with the first. The rows of
`sentences` are MS-SAN's, next to DiSAN's figures; those of `lama-heads` and `lama-imdb-heads` are on test, where the
paper draws dev.
"""
NOTES = """# How was each result measured?

**Every row is a record of a run in `results/runs`, made by the command above its table, without a choice on test unless
[Repeated test evaluations](#repeated-test-evaluations) says so. [results.md](../results.md) has the scores alone.**

Written by `python -m tools report`; not edited by hand.
"""


def command(
    docs: Annotated[Path, typer.Option(help="The folder of the two pages.")] = Path("docs"),
    bundles: Annotated[Path, typer.Option(help="Folder of the bundles.")] = Path("bundles"),
    results: Results = Path("results"),
) -> None:
    """Write docs/results.md and docs/notes/results.md from the cards and the records."""
    pages = {"results.md": report(bundles, results), "notes/results.md": notes(bundles, results)}
    for name, page in pages.items():
        write_file(docs / name, partial(Path.write_text, data=page, encoding="utf-8"))


def report(bundles: Path, results: Path) -> str:
    """The page of the scores. Raises ConfigError for a file or a table that is missing or cannot be read."""
    known = papers.read(results / "summary.toml")
    parts = [HEAD, *_summary(known, bundles, results), *_shipped(known["papers"], bundles)]
    parts += [f"{note}.\n" for note in known["notes"]]
    parts += [PAPERS, *paper_scores.lines(results), *papers.lines(results)]
    return "\n".join(parts)


def notes(bundles: Path, results: Path) -> str:
    """The page of how they were measured.

    Raises ConfigError as `report` does, and for a record of another version of a bundle than the one in `bundles`.
    """
    parts = [NOTES, reproduced.HEAD]
    for file in sorted((results / "tables").glob("*.toml")):
        parts += reproduced.table_lines(file.stem, paper_tables.read(file), results)
    overlaps = json.loads((results / "overlaps.json").read_text("utf-8"))
    parts += _data(bundles)
    parts += _repeated(papers.read(results / "summary.toml")["repeated"])
    parts += _overlaps(overlaps["tasks"])
    parts += bundle_records.transfer(results / "transfer", bundles, overlaps["sst_in_subj"])
    parts += bundle_records.suite(results / "suite", bundles)
    return "\n".join(parts)


def _summary(known: dict[str, Any], bundles: Path, results: Path) -> Iterator[str]:
    """The best score of each task, and the figure of its encoder's paper or of the paper that its table names."""
    yield "## Summary\n"
    yield "On test unless noted. The papers trained on all of the data.\n"
    rows = []
    for line in known["summary"]:
        if "bundle" in line:
            card = _card(bundles, line["bundle"])
            score = next(each for each in card["scores"] if each.items() >= line["score"].items())
            value, metric = score["value"], score["metric"]
            paper = _paper(known["papers"], card, score)
            split = "" if score["split"] == "test" else f", {score['split']}"
            source = f"`{card['name']}`{split}"
            source += f", taught by {teacher}" if (teacher := _teacher(card)) else ""
        else:
            table = paper_tables.read(results / "tables" / f"{line['table']}.toml")
            row = next(row for row in table.rows if row.name == line["row"])
            measured = reproduced.measured(line["table"], row, table, results)
            value, metric = (measured.mean, measured.metric) if measured else (None, "accuracy")
            source, paper = f"{row.name} (`{line['table']}`)", row.paper
        numbers = (figure(value, metric), figure(paper, metric), difference(value, paper, metric))
        rows.append((line["name"], source, *numbers))
    yield from markdown_table(("", "measured", "ours", "paper", "difference"), rows)


def _shipped(papers: Sequence[dict[str, Any]], bundles: Path) -> Iterator[str]:
    yield "## Shipped models\n"
    headings = ("bundle", "teacher", "commit", "dataset", "split", "metric", "score", "se", "paper")
    rows = []
    for card in _cards(bundles):
        for score in card["scores"]:
            value, metric, count = score["value"], score["metric"], score["rows"]
            rows.append(
                (
                    *(f"`{card['name']}`", _teacher(card), named(card["training"]["commit"])),
                    *(score[key] for key in ("dataset", "split", "metric")),
                    figure(value, metric),
                    figure(standard_error(value, metric, count), "accuracy", 2),
                    figure(_paper(papers, card, score), metric),
                    *(f"{count:,}", card["training"]["seed"]),
                )
            )
    yield from markdown_table((*headings, "rows", "seed"), rows)
    yield (
        "The paper's score is that of the same encoder, trained on all of the data. *Commit* is the source that\n"
        "trained the model; *with changes*: some were not committed, and nobody can look up which. A\n"
        "teacher, where one is named, is all-MiniLM-L6-v2, a model over it, or an earlier run of the same model,\n"
        "which itself learned from such teachers on more pairs (`configs/ms-san-nli-mined.toml`). all-MiniLM-L6-v2\n"
        "was trained on pairs of SNLI and MultiNLI, among a billion others, so a figure with a teacher rests on more\n"
        "than the rows that are listed.\n"
    )


def _data(bundles: Path) -> Iterator[str]:
    yield "## Data of the shipped models\n"
    cards = {card["name"]: card for card in _cards(bundles)}
    rows: list[tuple[str, ...]] = []
    for name, card in cards.items():
        start = Path(card["training"]["start"]).name
        before = cards[start]["training"]["data"] if start in cards and start != name else []
        rows += [(f"`{name}`", f"all of `{start}`", "", "", "")] if before else []
        rows += [
            (f"`{name}`", data["name"], f"{data['rows']:,}", data["licence"], data["note"])
            for data in card["training"]["data"]
            if data not in before
        ]
    yield from markdown_table(("bundle", "trained on", "rows", "licence of the data", ""), rows)


def _cards(bundles: Path) -> list[Any]:
    return [_card(bundles, file.parent.name) for file in sorted(bundles.glob("*/card.json"))]


def _card(bundles: Path, name: str) -> Any:
    return json.loads((bundles / name / "card.json").read_text(encoding="utf-8"))


def _teacher(card: dict[str, Any]) -> str:
    """The teachers of the model; "" where it learned from labels only."""
    if card["kind"] == "embedding":
        return "all-MiniLM-L6-v2"
    teachers: str = card["training"]["teacher"]
    return run_names(map(Path, teachers.split(", "))) if teachers else ""


def _paper(
    papers: Sequence[dict[str, Any]], card: dict[str, Any], score: dict[str, Any]
) -> float | None:
    """The paper's figure of the card's encoder where the score is on test."""
    if score["split"] != "test":
        return None
    key = (card["encoder"]["name"], score["dataset"], score["metric"])
    for paper in papers:
        if (
            key == (paper["encoder"], paper["dataset"], paper["metric"])
            and card["task"] in paper["tasks"]
        ):
            value: float = paper["value"]
            return value
    return None


def _repeated(splits: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "## Repeated test evaluations\n"
    rows = ((split["split"], split["times"], split["why"]) for split in splits)
    yield from markdown_table(("test split", "times", ""), rows)


def _overlaps(counts: dict[str, dict[str, int]]) -> Iterator[str]:
    yield "## Train/test overlap\n"
    yield (
        "Counted by `python -m tools overlaps`: test rows whose text or pair, without case and white space, stands\n"
        "in the task's train or dev split, the same where only letters and digits are compared, and train and dev\n"
        "rows that stand in test. They are left in. CR, MPQA and SUBJ are sums over ten folds, each row in test once.\n"
        "For `embed` the rows are the sentences of STS-B's dev pairs, which that task leaves out; an `ms-san-embed`\n"
        "that was trained before 2026-11-29 learned from 1 of the 1,500 pairs whole, and from one side of 17.\n"
    )
    rows = (
        (
            task,
            *(f"{count[key]:,}" for key in ("rows", "test_seen", "letters_seen", "train_in_test")),
        )
        for task, count in counts.items()
    )
    headings = ("task", "test rows", "seen", "seen by letters", "train and dev rows in test")
    yield from markdown_table(headings, rows)
