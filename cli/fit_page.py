"""report.html: what `fit` found, as one page without scripts, and the table that it prints."""

from pathlib import Path
from typing import Any

from jinja2 import Environment

from heedful.cli.scores import CLASS_COLUMNS, class_cells, confusions

TEMPLATE = Path(__file__).with_suffix(".html")
MOST_LABELS, MOST_CONFUSIONS = 8, 30
"""Of more labels the confusion is a list of what is confused most, not a table: both fit a phone."""
COLUMNS = (
    *("candidate", "score", "95 % interval", "deviation", "macro-F1", "log loss"),
    *("rows", "seconds"),
)


def candidate_cells(content: dict[str, Any]) -> list[tuple[str, ...]]:
    """The rows of COLUMNS; the chosen one has a star."""
    frequent = ("most frequent label", f"{content['most_frequent_label']:.1%}")
    rows: list[tuple[str, ...]] = [(*frequent, *[""] * (len(COLUMNS) - len(frequent)))]
    for one in content["candidates"] + content["references"]:
        deviation = "" if one["deviation"] is None else f"{100 * one['deviation']:.1f}"
        interval = "" if one["low"] is None else f"{one['low']:.1%} to {one['high']:.1%}"
        rows.append(
            (
                one["name"] + (" *" if one.get("chosen") else ""),
                f"{one['score']:.1%}",
                interval,
                deviation,
                f"{one['macro_f1']:.3f}",
                f"{one['log_loss']:.3f}",
                str(one["rows"]),
                f"{one['seconds']:g}" if "seconds" in one else "",
            )
        )
    return rows


def lines(content: dict[str, Any]) -> list[str]:
    """What is said below the table of candidates."""
    said = (
        _compared_line(content),
        _unlabelled_line(content),
        _truncated_line(content),
        _repeated_line(content),
    )
    return [line for line in said if line]


def _compared_line(content: dict[str, Any]) -> str:
    """The scores that decided between candidates of different held-out rows; "" if all had the same."""
    said = content.get("compared")
    if not said:
        return ""
    scores = ", ".join(f"{one['name']} {one['score']:.1%}" for one in said["candidates"])
    return f"the choice is between these, on the {said['rows']} rows that were held out from each: {scores}"


def _unlabelled_line(content: dict[str, Any]) -> str:
    """What was learned from texts without labels; "" if none was given."""
    said = content.get("unlabelled")
    if not said:
        return ""
    return (
        f"{said['file']}: {said['texts']} different texts without labels; the candidates called taught learn "
        f"from {said['learned']} of them, as logistic regression on {said['teacher']}, frozen or fine-tuned on the "
        "rows, labels these"
    )


def _truncated_line(content: dict[str, Any]) -> str:
    """How many rows are longer than what is read; "" if none is."""
    said = content.get("truncated")
    if not said or not said["rows"]:
        return ""
    share = said["rows"] / content["rows"]
    return (
        f"{said['rows']} rows ({share:.0%}) are longer than {said['max_tokens']} tokens: "
        "what comes later is read by no candidate"
    )


def _repeated_line(content: dict[str, Any]) -> str:
    """How many rows repeat a text; "" if none does."""
    count = content["repeated"]
    if not count:
        return ""
    return (
        f"{count} of the {content['rows']} rows repeat the text of another row: each is counted, so the intervals "
        "are narrower than they should be"
    )


def _with_interval(score: dict[str, Any]) -> str:
    if score["low"] is None:
        return f"{score['score']:.1%}"
    return f"{score['score']:.1%} ({score['low']:.1%} to {score['high']:.1%})"


def abstain_line(said: dict[str, Any]) -> str:
    """From where on the bundle answers, and what that means for the rows held out."""
    return (
        f"the bundle answers from probability {said['least']:.3f} on, else null, so that at least "
        f"{said['precision']:.0%} of the answers to new texts are right, as far as the held-out rows tell: "
        f"{_answered(said)}"
    )


def _answered(said: dict[str, Any]) -> str:
    of = f"it answers {said['answers']} of {said['rows']} rows ({said['answered']:.0%})"
    return f"{of}, {_with_interval(said)} of them rightly" if said["answers"] else of


def test_lines(content: dict[str, Any]) -> list[str]:
    """What was measured on the test file, and what to know about it; nothing if there is none."""
    test = content.get("test")
    if not test:
        return []
    name, abstains = test["file"], test.get("abstain")
    score = f"{content['metric']} {_with_interval(test)}, macro-F1 {test['macro_f1']:.3f}"
    every = ", if every row is answered" if abstains else ""
    said = [f"{name} ({test['rows']} rows): {score}{every}"]
    if abstains:
        said.append(f"{name}: with null where it is not sure, {_answered(abstains)}")
    if unknown := test["unknown_labels"]:
        said.append(
            f"{name}: labels that training has not, which count as wrong: {', '.join(unknown)}"
        )
    if count := test["trained_on"]:
        said.append(
            f"{name}: {count} of the rows were trained on too, so the score is too high: remove them "
            "from one of the files"
        )
    return said


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
        lines=lines(content),
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
