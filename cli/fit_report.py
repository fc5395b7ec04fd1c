"""The tables that `fit` prints, and its report in the bundle's folder: report.json and report.html."""

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
from heedful.cli.fit_page import COLUMNS, abstain_line, candidate_cells, lines, page, test_lines
from heedful.cli.scores import by_class, confusion, wilson
from heedful.files.atomic import write_file, write_json
from heedful.runtime.bundles.card import Card
from heedful.training import assess
from heedful.training.errors import DataError
from heedful.training.labelled_texts import Row, text_key

PAGE, RECORD = "report.html", "report.json"
SUSPECTS = 20
"""Rows listed that may be labelled wrongly, each text once."""
MOST_CV_ROWS = 20_000
"""Rows above which only held-out rows are searched for wrong labels."""


class Report:
    """The facts of a run of `fit`, recorded as it goes; `content` is report.json."""

    def __init__(self, file: Path, problem: Problem, parts: Sequence[assess.Split]) -> None:
        self._problem, self._balanced = problem, False
        cross_validated = len(parts) > 1
        counts = problem.targets.sum(axis=0)
        # The score of answering the most frequent label to each row: accuracy, or micro-F1.
        score = counts.max() / len(problem.rows)
        if problem.multi_label:
            score = 2 * counts.max() / (len(problem.rows) + counts.sum())
        self.content: dict[str, Any] = {
            "file": file.name,
            "rows": len(problem.rows),
            "repeated": len(problem.rows) - len({text_key(row.texts) for row in problem.rows}),
            "labels": {
                label: int(count) for label, count in zip(problem.labels, counts, strict=True)
            },
            "held_out": f"every row once, in {len(parts)} parts"
            if cross_validated
            else "a tenth of the rows",
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
        """Record the candidates, the references, which no bundle holds, and the chosen one's calibrated answers."""
        self._balanced = held.balanced
        self.content["metric"] = held.metric
        if held.balanced:
            chance = 0.5 if held.multi_label else 1 / len(self._problem.labels)
            self.content["most_frequent_label"] = chance
        self.content["candidates"] = [
            {
                "name": candidate.name,
                **_score(candidate.held, calibrated=True),
                "seconds": round(candidate.seconds, 1),
                "chosen": candidate is chosen,
            }
            for candidate in candidates
        ]
        compared = finalists(candidates)
        if len(compared) < len(candidates):
            self.content["compared"] = {
                "rows": len(compared[0].held.rows),
                "candidates": [{"name": item.name, **_score(item.held)} for item in compared],
            }
        self.content["references"] = [
            {"name": name, **_score(reference, calibrated=True)} for name, reference in references
        ]
        self.content["temperature"] = temperature
        self.content["risk_coverage"] = assess.risk_coverage(held)
        self.content["classes"] = _classes(self._problem.labels, held)
        if not held.multi_label:
            labels, answers = held.targets.argmax(axis=1), held.logits.argmax(axis=1)
            table = confusion(labels, answers, len(self._problem.labels))
            self.content["confusion"] = table.tolist()
        self.content["suspects"] = self._suspects(held)

    def abstain(self, held: assess.HeldOut, precision: float) -> float:
        """The lowest probability from which answers reach the precision. Raises DataError if none does."""
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
        """Record the words that decide, by the best linear model that reads words, of those held out on most rows.

        Where the chosen candidate was not held out on all rows, this model also names the suspects, of all rows.
        """
        readers = [item for item in candidates if item.recipe and item.recipe.words]
        top = max(readers, key=lambda item: (len(item.held.rows), item.held.score))
        assert top.recipe is not None
        self.content["words"] = linear.deciding_words(top.recipe)
        rows = len(self._problem.rows)
        if len(chosen.held.rows) < rows <= MOST_CV_ROWS:
            held = top.held
            if len(held.rows) < rows:
                held = linear.cross_validated(top.recipe, seed)
            self.content["suspects"] = self._suspects(held)

    def _suspects(self, held: assess.HeldOut) -> list[dict[str, Any]]:
        rows = self._problem.rows
        suspects: dict[tuple[str, ...], dict[str, Any]] = {}
        for row, answer in assess.suspects(held):
            texts = rows[row].texts
            suspect = {
                "line": rows[row].line,
                "text": " / ".join(texts)[:300],
                "label": rows[row].label,
                "answer": self._problem.labels[answer],
            }
            suspects.setdefault(text_key(texts), suspect)
        return list(suspects.values())[:SUSPECTS]

    def test(self, out: Path, parser: str, file: Path, rows: Sequence[Row], separator: str) -> None:
        """Measure the written bundle on another file."""
        labels = self._problem.labels
        unknown = sorted({label for row in rows for label in row.labels(separator)} - set(labels))
        names = (*labels, *unknown)
        targets = np.array([[label in row.labels(separator) for label in names] for row in rows])
        impossible = np.full((len(rows), len(unknown)), -np.inf)
        logits = np.concatenate([answers(out, parser, rows), impossible], axis=1)
        trained_on = {text_key(row.texts) for row in self._problem.rows}
        numbers = np.arange(len(rows))
        multi_label, balanced = self._problem.multi_label, self._balanced
        held = assess.HeldOut(numbers, logits, targets, numbers * 0, multi_label, balanced)
        self.content["test"] = {
            "file": file.name,
            **_score(held),
            "unknown_labels": unknown,
            "trained_on": sum(text_key(row.texts) in trained_on for row in rows),
            "classes": _classes(names, held),
        }
        if abstain := self.content.get("abstain"):
            self.content["test"]["abstain"] = _answered(held, abstain["least"])

    def show(self, console: Console) -> None:
        """Print the candidates and what was skipped."""
        content = self.content
        title = f"Held out: {content['held_out']}"
        # Without lines between the columns 80 characters, a notebook's width, cut no heading.
        grid = Table(*COLUMNS, title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for cells in candidate_cells(content):
            grid.add_row(*cells)
        console.print(grid)
        for line in lines(content):
            console.print(line)
        for skipped in content["skipped"]:
            console.print(f"not tried: {skipped['name']}: {skipped['why']}")
        sure = ", ".join(f"{share:.0%}: {right:.1%}" for share, right in content["risk_coverage"])
        console.print(f"accuracy of the surest answers: {sure}")
        if "abstain" in content:
            console.print(abstain_line(content["abstain"]))

    def write(self, out: Path, card: Card, console: Console) -> None:
        """Write both files into the bundle's folder, and print the score on the test file."""
        for line in test_lines(self.content):
            console.print(line)
        self.content |= {"bundle": card.name, "version": card.version}
        write_json(out / RECORD, self.content)
        write_file(out / PAGE, lambda part: part.write_text(page(self.content), encoding="utf-8"))


def _score(held: assess.HeldOut, *, calibrated: bool = False) -> dict[str, Any]:
    """Score, its Wilson interval (of an accuracy only), macro-F1 and log loss (None where labels are not known)."""
    low, high = None, None
    loss = held.divided(assess.temperature(held)).loss if calibrated else held.loss
    if held.metric == "accuracy":
        low, high = wilson(int(held.right.sum()), len(held.rows))
    return {
        "score": held.score,
        "low": low,
        "high": high,
        "deviation": held.deviation,
        "macro_f1": held.macro,
        "log_loss": loss if np.isfinite(loss) else None,
        "rows": len(held.rows),
    }


def _answered(held: assess.HeldOut, least: float) -> dict[str, Any]:
    """The answers from this probability on: their number, share and precision with Wilson's interval."""
    answers, right = assess.answered(held, least)
    coverage = {"rows": len(held.rows), "answers": answers, "answered": answers / len(held.rows)}
    if not answers:
        return {**coverage, "score": None, "low": None, "high": None}
    low, high = wilson(right, answers)
    return {**coverage, "score": right / answers, "low": low, "high": high}


def _classes(labels: Sequence[str], held: assess.HeldOut) -> list[dict[str, Any]]:
    right = (held.targets & held.answers).sum(axis=0)
    return by_class(labels, right, held.targets.sum(axis=0), held.answers.sum(axis=0))
