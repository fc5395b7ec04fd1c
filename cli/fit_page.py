"""report.html: the results of `fit` as one page without scripts, and the lines that `fit` prints."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment

from heedful.cli.scores import CLASS_COLUMNS, class_cells, confusions

TEMPLATE = Path(__file__).with_suffix(".html")
MOST_LABELS, MOST_CONFUSIONS = 8, 30
"""With more labels the most frequent confusions are listed in place of a table: both fit a phone."""
COLUMNS = (
    *("candidate", "score", "95 % interval", "deviation", "macro-F1", "log loss"),
    *("rows", "seconds"),
)


def candidate_cells(content: dict[str, Any]) -> list[tuple[str, ...]]:
    """The cells below COLUMNS; the chosen candidate has a star."""
    frequent = ("most frequent label", f"{content['most_frequent_label']:.1%}")
    rows: list[tuple[str, ...]] = [(*frequent, *[""] * (len(COLUMNS) - len(frequent)))]
    for candidate in content["candidates"] + content["references"]:
        deviation = "" if candidate["deviation"] is None else f"{100 * candidate['deviation']:.1f}"
        interval = (
            "" if candidate["low"] is None else f"{candidate['low']:.1%} to {candidate['high']:.1%}"
        )
        rows.append(
            (
                candidate["name"] + (" *" if candidate.get("chosen") else ""),
                f"{candidate['score']:.1%}",
                interval,
                deviation,
                f"{candidate['macro_f1']:.3f}",
                f"{candidate['log_loss']:.3f}",
                str(candidate["rows"]),
                f"{candidate['seconds']:g}" if "seconds" in candidate else "",
            )
        )
    return rows


def lines(content: dict[str, Any]) -> Iterator[str]:
    """The lines below the table of candidates."""
    if compared := content.get("compared"):
        # The candidates have different held-out rows; these scores, on common rows, decided.
        scores = ", ".join(f"{row['name']} {row['score']:.1%}" for row in compared["candidates"])
        yield (
            f"the choice is between these, on the {compared['rows']} rows that were held out from each: {scores}"
        )
    if unlabelled := content.get("unlabelled"):
        yield (
            f"{unlabelled['file']}: {unlabelled['texts']} different texts without labels; the candidates called "
            f"taught learn from {unlabelled['learned']} of them, as logistic regression on {unlabelled['teacher']}, "
            "frozen or fine-tuned on the rows, labels these"
        )
    truncated = content.get("truncated")
    if truncated and truncated["rows"]:
        yield (
            f"{truncated['rows']} rows ({truncated['rows'] / content['rows']:.0%}) are longer than "
            f"{truncated['max_tokens']} tokens: no candidate reads the rest of them"
        )
    if count := content["repeated"]:
        yield (
            f"{count} of the {content['rows']} rows repeat the text of another row: each is counted, so the intervals "
            "are narrower than they should be"
        )


def _with_interval(score: dict[str, Any]) -> str:
    if score["low"] is None:
        return f"{score['score']:.1%}"
    return f"{score['score']:.1%} ({score['low']:.1%} to {score['high']:.1%})"


def abstain_line(abstain: dict[str, Any]) -> str:
    """The probability from which the bundle answers, and the share and precision of its answers on held-out rows."""
    return (
        f"the bundle answers from probability {abstain['least']:.3f} on, else null, so that at least "
        f"{abstain['precision']:.0%} of the answers to new texts are right, as far as the held-out rows tell: "
        f"{_answered(abstain)}"
    )


def _answered(abstain: dict[str, Any]) -> str:
    share = f"it answers {abstain['answers']} of {abstain['rows']} rows ({abstain['answered']:.0%})"
    return f"{share}, {_with_interval(abstain)} of them rightly" if abstain["answers"] else share


def test_lines(content: dict[str, Any]) -> list[str]:
    """The scores on the test file and remarks on its rows; nothing without such a file."""
    test = content.get("test")
    if not test:
        return []
    name, abstains = test["file"], test.get("abstain")
    score = f"{content['metric']} {_with_interval(test)}, macro-F1 {test['macro_f1']:.3f}"
    condition = ", if every row is answered" if abstains else ""
    sentences = [f"{name} ({test['rows']} rows): {score}{condition}"]
    if abstains:
        sentences.append(f"{name}: with null where it is not sure, {_answered(abstains)}")
    if unknown := test["unknown_labels"]:
        sentences.append(
            f"{name}: labels that no training row has, which count as wrong: {', '.join(unknown)}"
        )
    if count := test["trained_on"]:
        sentences.append(
            f"{name}: {count} of the rows were trained on too, so the score is too high: remove them "
            "from one of the files"
        )
    return sentences


def page(content: dict[str, Any]) -> str:
    """report.html: one page without scripts, readable without this program."""
    template = Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8"))
    labels, table = list(content["labels"]), content.get("confusion", ())
    confused = confusions(labels, table)[:MOST_CONFUSIONS] if len(labels) > MOST_LABELS else []
    numbers = range(1, len(labels) + 1)
    return template.render(
        content,
        columns=COLUMNS,
        candidate_cells=candidate_cells(content),
        class_columns=CLASS_COLUMNS,
        class_cells=class_cells,
        lines=list(lines(content)),
        test_lines=test_lines(content),
        confused=[(label, answer, count) for count, label, answer in confused],
        counts=[
            ("label given", *numbers),
            *(
                (f"{i} {label}", *row)
                for i, label, row in zip(numbers, labels, table, strict=False)
            ),
        ],
        sure=[(f"{share:.0%}", f"{right:.1%}") for share, right in content["risk_coverage"]],
        abstain_line=abstain_line(content["abstain"]) if "abstain" in content else "",
    )
