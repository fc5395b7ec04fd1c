"""Writes docs/results.md from records: the shipped cards, the reproduced tables, the transfer runs."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import Results
from heedful.files.atomic import write_file
from heedful.training.metrics import standard_error
from heedful.training.suite import WORDS
from tools import paper_tables, papers, reproduced
from tools.markdown import figure, run_names
from tools.markdown import table as markdown_table

HEAD = """# Results

Written by `python -m tools report` from `bundles/*/card.json` and `results/`; not edited by hand. Test scores were
measured through the service. Accuracies are in percent.
"""
TASKS = ("cr", "mpqa", "subj", "sst2", "trec")
SIMILARITIES = ("stsb dev spearman", "sick test pearson")


def command(
    out: Annotated[Path, typer.Option(help="The page.")] = Path("docs/results.md"),
    bundles: Annotated[Path, typer.Option(help="Folder of the bundles.")] = Path("bundles"),
    results: Results = Path("results"),
) -> None:
    """Write docs/results.md from the cards and the records."""
    page = report(bundles, results)
    write_file(out, lambda part: part.write_text(page, encoding="utf-8"))


def report(bundles: Path, results: Path) -> str:
    """The page. Raises ConfigError for a file or a table that is not there or cannot be read."""
    known = papers.read(results / "goals.toml")
    parts = [HEAD, *_goals(known["goals"], bundles, results), *_shipped(known["papers"], bundles)]
    parts.append(reproduced.HEAD)
    for file in sorted((results / "tables").glob("*.toml")):
        parts += reproduced.table_lines(file.stem, paper_tables.read(file), results)
    parts += papers.lines(results)
    overlaps = _read(results / "overlaps.json")
    parts += _caveats(known["asked"], overlaps)
    parts += _transfer(results / "transfer", overlaps["sst_in_subj"])
    parts += suite_tables(results / "suite")
    return "\n".join(parts)


def _goals(goals: Sequence[dict[str, Any]], bundles: Path, results: Path) -> Iterator[str]:
    yield "## Goals\n"
    yield (
        "On test unless noted. A goal is about what the papers reach with all of the data, the minimum is the\n"
        "score that is accepted.\n"
    )
    rows = []
    for goal in goals:
        value, metric, where = (
            _of_bundle(goal, bundles) if "bundle" in goal else _of_row(goal, results)
        )
        result = "not run" if value is None else reached(value, goal["goal"], goal["floor"])
        figures = (figure(one, metric) for one in (value, goal["goal"], goal["floor"]))
        rows.append((goal["name"], where, *figures, result))
    yield from markdown_table(("", "measured", "score", "goal", "minimum", "result"), rows)


def _of_bundle(goal: dict[str, Any], bundles: Path) -> tuple[float | None, str, str]:
    """The score that the card has, its metric, and where it was measured."""
    name, split = goal["bundle"], goal.get("split", "test")
    wanted = (goal["dataset"], split, goal["metric"])
    card = _read(bundles / name / "card.json")
    (score,) = (s for s in card["scores"] if (s["dataset"], s["split"], s["metric"]) == wanted)
    where = f"`{name}`" if split == "test" else f"`{name}`, {split}"
    if teacher := _teacher(card):
        where += f", taught by {teacher}"
    return score["value"], goal["metric"], where


def _of_row(goal: dict[str, Any], results: Path) -> tuple[float | None, str, str]:
    """The same of a table's row: the mean of its runs, None where there are none."""
    table = paper_tables.read(results / "tables" / f"{goal['table']}.toml")
    (row,) = (row for row in table.rows if row.name == goal["row"])
    found = reproduced.measured(goal["table"], row, table, results)
    where = f"{row.name} (`{goal['table']}`)"
    return (found.mean, found.metric, where) if found else (None, "accuracy", where)


def _shipped(papers: Sequence[dict[str, Any]], bundles: Path) -> Iterator[str]:
    cards = [_read(file) for file in sorted(bundles.glob("*/card.json"))]
    yield "## Shipped models\n"
    yield from markdown_table(
        ("bundle", "teacher", "dataset", "split", "metric", "score", "se", "paper", "rows", "seed"),
        (
            (
                f"`{card['name']}`",
                _teacher(card),
                *(score[key] for key in ("dataset", "split", "metric")),
                figure(score["value"], score["metric"]),
                figure(
                    standard_error(score["value"], score["metric"], score["rows"]), "accuracy", 2
                ),
                figure(_paper(papers, card, score), score["metric"]),
                f"{score['rows']:,}",
                card["training"]["seed"],
            )
            for card in cards
            for score in card["scores"]
        ),
    )
    yield (
        "The paper's score is that of the same encoder, trained on all of the data. A teacher, where one is\n"
        "named, is all-MiniLM-L6-v2, a model over it, or an earlier run of the same model, which itself\n"
        "learned from such teachers on more pairs (`configs/ms-san-nli-mined.toml`). all-MiniLM-L6-v2 was\n"
        "itself trained on pairs of SNLI and MultiNLI, among\n"
        "a billion others, so a figure with a teacher rests on more than the rows that are listed.\n"
    )
    yield from markdown_table(
        ("bundle", "teacher", "trained on", "rows", "licence of the data", ""),
        (
            (
                f"`{card['name']}`",
                _teacher(card),
                data["name"],
                f"{data['rows']:,}",
                data["licence"],
                data["note"],
            )
            for card in cards
            for data in card["training"]["data"]
        ),
    )


def _teacher(card: dict[str, Any]) -> str:
    """Whose answers the model learned from, "" where labels alone taught it."""
    if card["kind"] == "embedding":
        return "all-MiniLM-L6-v2"
    found: str = card["training"]["teacher"]
    return run_names(map(Path, found.split(", "))) if found else ""


def _paper(
    papers: Sequence[dict[str, Any]], card: dict[str, Any], score: dict[str, Any]
) -> float | None:
    """The paper's figure of the card's encoder where the score is on test."""
    if score["split"] != "test":
        return None
    for paper in papers:
        if (
            card["task"] in paper["tasks"]
            and paper["dataset"] == score["dataset"]
            and paper["metric"] == score["metric"]
            and paper["encoder"] == card["encoder"]["name"]
        ):
            value: float = paper["value"]
            return value
    return None


def _caveats(asked: Sequence[dict[str, Any]], overlaps: dict[str, Any]) -> Iterator[str]:
    """How often a test split was asked, and which of its rows stand in the training data."""
    yield "## Test splits asked more than once\n"
    rows = ((one["split"], one["times"], one["why"]) for one in asked)
    yield from markdown_table(("test split", "times", ""), rows)
    yield "## Test rows that training has seen\n"
    yield (
        "Counted by `python -m tools.overlaps`: test rows whose text or pair, without case and white\n"
        "space, stands in the task's train or dev split, and rows of these that stand in test. They are left in.\n"
    )
    counts = overlaps["tasks"].items()
    yield from markdown_table(
        ("task", "test rows", "seen", "train and dev rows that stand in test"),
        (
            (task, f"{one['rows']:,}", one["test_seen"], one["train_in_test"])
            for task, one in counts
        ),
    )


def _transfer(folder: Path, in_subj: dict[str, int]) -> Iterator[str]:
    yield "## Frozen embeddings\n"
    yield (
        "`python -m tools transfer MODEL`: logistic regression on frozen embeddings, accuracy (CR, MPQA and SUBJ in\n"
        "ten folds); cosine similarity without training; sentences of SUBJ (23 words) a second, one thread, and\n"
        "MiniLM's in the same run, in torch and bfloat16. Earlier bundles were measured on the test folds too.\n"
        f"SUBJ holds {in_subj['train']:,} texts of SST's train trees, whose labels `disan-sst5` has learned, and\n"
        f"{in_subj['test']:,} of SST's test sentences, on which it is measured above.\n"
    )
    yield from markdown_table(
        ("model", "values", *TASKS, *SIMILARITIES, "sentences/s", "MiniLM, same run"),
        (
            (
                record["model"],
                record["dimension"],
                *(figure(record["accuracy"].get(task), "accuracy") for task in TASKS),
                *(figure(record["similarity"].get(one), "") for one in SIMILARITIES),
                f"{record['sentences_per_second']:.0f}",
                f"{record['minilm_sentences_per_second']:.0f}",
            )
            for record in map(_read, sorted(folder.glob("*.json")))
        ),
    )


def suite_tables(folder: Path) -> Iterator[str]:
    """A table for the records that have the same sets; nothing where there is no record."""
    rows: dict[tuple[str, ...], list[list[str]]] = {}
    for record in map(_read, sorted(folder.glob("*.json"))):
        for prefix, name in (("", f"`{record['model']}`"), (WORDS, "the mean of its word vectors")):
            own = [
                one for one in record["figures"] if one["dataset"].startswith(WORDS) == bool(prefix)
            ]
            columns = [f"{one['dataset'].removeprefix(WORDS)}, {one['metric']}" for one in own]
            if own:
                values = [figure(one["value"], one["metric"]) for one in own]
                rows.setdefault((record["split"], *columns), []).append([name, *values])
    if rows:
        yield "## The suite\n"
        yield (
            "`heedful evaluate BUNDLE --suite`: every set of a bundle's kind. ECE is the expected calibration error\n"
            "over 15 bins. CR, MPQA and SUBJ are in ten folds.\n"
        )
    for (split, *columns), together in rows.items():
        yield from markdown_table((f"on {split}", *columns), together)


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def reached(value: float, goal: float, minimum: float) -> str:
    """What the page says of a figure of which more is better."""
    if value >= goal:
        return "goal reached"
    return "minimum reached" if value >= minimum else "**missed**"
