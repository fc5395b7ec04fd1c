"""What `fit` prints, and the report that it puts into the bundle's folder: report.json and report.html."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from heedful.cli.fit_candidate import Candidate, Problem, answers, finalists
from heedful.cli.fit_linear import LinearFit
from heedful.cli.fit_page import (
    COLUMNS,
    abstain_line,
    candidate_cells,
    lines,
    page,
    test_lines,
)
from heedful.cli.scores import by_class, confusion, wilson
from heedful.files.atomic import write_file, write_json
from heedful.runtime.bundles.card import Card
from heedful.training import assess
from heedful.training.errors import DataError
from heedful.training.labelled_texts import Row, same

PAGE, RECORD = "report.html", "report.json"
SUSPECTS = 20
"""Rows listed that may be labelled wrongly, each text once."""
MOST_CV_ROWS = 20_000
"""Rows above which only held-out rows are searched for wrong labels."""


class Report:
    """Facts in the order in which `fit` finds them; `content` is report.json."""

    def __init__(self, file: Path, problem: Problem, parts: Sequence[assess.Split]) -> None:
        self._problem, self._balanced = problem, False
        few = len(parts) > 1
        counts = problem.targets.sum(axis=0)
        # The score of answering the most frequent label to each row: accuracy, or micro-F1.
        score = counts.max() / len(problem.rows)
        if problem.multi_label:
            score = 2 * counts.max() / (len(problem.rows) + counts.sum())
        self.content: dict[str, Any] = {
            "file": file.name,
            "rows": len(problem.rows),
            "repeated": len(problem.rows) - len({same(row.texts) for row in problem.rows}),
            "labels": {
                label: int(count) for label, count in zip(problem.labels, counts, strict=True)
            },
            "held_out": f"every row once, in {len(parts)} parts" if few else "a tenth of the rows",
            "most_frequent_label": float(score),
            "candidates": [],
            "skipped": [],
        }

    def skip(self, name: str, why: str) -> None:
        self.content["skipped"].append({"name": name, "why": why})

    def choose(
        self,
        candidates: Sequence[Candidate],
        references: Sequence[tuple[str, assess.HeldOut]],
        chosen: Candidate,
        held: assess.HeldOut,
        temperature: float,
    ) -> None:
        """`held` are the chosen one's calibrated answers; no bundle holds the references."""
        self._balanced = held.balanced
        self.content["metric"] = held.metric
        if held.balanced:
            chance = 0.5 if held.multi_label else 1 / len(self._problem.labels)
            self.content["most_frequent_label"] = chance
        self.content["candidates"] = [
            {
                "name": one.name,
                **_score(one.held),
                "seconds": round(one.seconds, 1),
                "chosen": one is chosen,
            }
            for one in candidates
        ]
        last = finalists(candidates)
        if len(last) < len(candidates):
            compared = [{"name": one.name, **_score(one.held)} for one in last]
            self.content["compared"] = {"rows": len(last[0].held.rows), "candidates": compared}
        self.content["references"] = [{"name": name, **_score(one)} for name, one in references]
        self.content["temperature"] = temperature
        self.content["risk_coverage"] = assess.risk_coverage(held)
        self.content["classes"] = _classes(self._problem.labels, held)
        if not held.multi_label:
            labels, answers = held.targets.argmax(axis=1), held.logits.argmax(axis=1)
            table = confusion(labels, answers, len(self._problem.labels))
            self.content["confusion"] = table.tolist()
        self.content["suspects"] = self._suspects(held)

    def abstain(self, held: assess.HeldOut, precision: float) -> float:
        """The probability from which answers reach the precision. Raises DataError if none does."""
        least = assess.threshold(held, precision)
        if least is None:
            most = math.floor(100 * assess.most_precise(held)) / 100
            raise DataError(
                f"--abstain {precision}: on the held-out rows no threshold reaches this precision: ask for "
                f"at most {most:.2f}, or add rows"
            )
        self.content["abstain"] = {"precision": precision, "least": least, **_answered(held, least)}
        return least

    def explain(
        self, linear: LinearFit, seed: int, candidates: Sequence[Candidate], chosen: Candidate
    ) -> None:
        """Words that decide, by the best linear model that reads words, of those held out on most rows.

        Where the chosen one was not held out on all rows, it also finds the wrong labels, on all.
        """
        reading = [one for one in candidates if one.recipe and one.recipe.words]
        top = max(reading, key=lambda one: (len(one.held.rows), one.held.score))
        assert top.recipe is not None
        self.content["words"] = linear.deciding_words(top.recipe)
        every = len(self._problem.rows)
        if len(chosen.held.rows) < every <= MOST_CV_ROWS:
            known = len(top.held.rows) == every
            self.content["suspects"] = self._suspects(
                top.held if known else linear.every_row(top.recipe, seed)
            )

    def _suspects(self, held: assess.HeldOut) -> list[dict[str, Any]]:
        rows = self._problem.rows
        found: dict[tuple[str, ...], dict[str, Any]] = {}
        for row, answer in assess.suspects(held):
            texts = rows[row].texts
            one = {
                "line": rows[row].line,
                "text": " / ".join(texts)[:300],
                "label": rows[row].label,
                "answer": self._problem.labels[answer],
            }
            found.setdefault(same(texts), one)
        return list(found.values())[:SUSPECTS]

    def test(self, out: Path, parser: str, file: Path, rows: Sequence[Row], separator: str) -> None:
        """Measure the written bundle on another file."""
        labels = self._problem.labels
        unknown = sorted({label for row in rows for label in row.labels(separator)} - set(labels))
        every = (*labels, *unknown)
        targets = np.array([[label in row.labels(separator) for label in every] for row in rows])
        never = np.full((len(rows), len(unknown)), -np.inf)
        logits = np.concatenate([answers(out, parser, rows), never], axis=1)
        trained_on = {same(row.texts) for row in self._problem.rows}
        numbers = np.arange(len(rows))
        several, balanced = self._problem.multi_label, self._balanced
        held = assess.HeldOut(numbers, logits, targets, numbers * 0, several, balanced)
        self.content["test"] = {
            "file": file.name,
            **_score(held),
            "unknown_labels": unknown,
            "trained_on": sum(same(row.texts) in trained_on for row in rows),
            "classes": _classes(every, held),
        }
        if said := self.content.get("abstain"):
            self.content["test"]["abstain"] = _answered(held, said["least"])

    def show(self, console: Console) -> None:
        """Print the candidates and what was skipped."""
        content = self.content
        title = f"Held out: {content['held_out']}"
        # Without lines between the columns 80 characters, a notebook's width, cut no heading.
        grid = Table(*COLUMNS, title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for cells in candidate_cells(content):
            grid.add_row(*cells)
        console.print(grid)
        for said in lines(content):
            console.print(said)
        for one in content["skipped"]:
            console.print(f"not tried: {one['name']}: {one['why']}")
        line = ", ".join(f"{share:.0%}: {right:.1%}" for share, right in content["risk_coverage"])
        console.print(f"accuracy of the surest answers: {line}")
        if "abstain" in content:
            console.print(abstain_line(content["abstain"]))

    def write(self, out: Path, card: Card, console: Console) -> None:
        """Write both files into the bundle's folder, and print the score on the test file."""
        for said in test_lines(self.content):
            console.print(said)
        self.content |= {"bundle": card.name, "version": card.version}
        write_json(out / RECORD, self.content)
        write_file(out / PAGE, lambda part: part.write_text(page(self.content), encoding="utf-8"))


def _score(held: assess.HeldOut) -> dict[str, Any]:
    """Score, its Wilson interval (of an accuracy only), macro-F1 and log loss (None where labels are not known)."""
    low, high = None, None
    if held.metric == "accuracy":
        low, high = wilson(int(held.right.sum()), len(held.rows))
    return {
        "score": held.score,
        "low": low,
        "high": high,
        "deviation": held.deviation,
        "macro_f1": held.macro,
        "log_loss": held.loss if np.isfinite(held.loss) else None,
        "rows": len(held.rows),
    }


def _answered(held: assess.HeldOut, least: float) -> dict[str, Any]:
    """How many rows are answered from this probability on, and how precisely, with Wilson's interval."""
    answers, right = assess.answered(held, least)
    found = {"rows": len(held.rows), "answers": answers, "answered": answers / len(held.rows)}
    if not answers:
        return {**found, "score": None, "low": None, "high": None}
    low, high = wilson(right, answers)
    return {**found, "score": right / answers, "low": low, "high": high}


def _classes(labels: Sequence[str], held: assess.HeldOut) -> list[dict[str, Any]]:
    right = (held.targets & held.answers).sum(axis=0)
    return by_class(labels, right, held.targets.sum(axis=0), held.answers.sum(axis=0))
