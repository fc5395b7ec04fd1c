"""report.html: what `fit` found, as one page without scripts, and the table that it prints."""

import html
from collections.abc import Sequence
from typing import Any

from heedful.cli.scores import confusions

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#222;background:#fff}table{border-collapse:collapse;margin:.5rem 0 1.5rem}"
    "table{display:block;max-width:100%;overflow-x:auto}.confusion td,.confusion th{padding:.15rem .2rem;"
    "font-size:11px}.confusion th+th,.confusion td+td{text-align:right}.confusion td:first-child"
    "{max-width:5.5rem;overflow-wrap:anywhere}"
    "th,td{border-bottom:1px solid #ccc;padding:.25rem .75rem .25rem 0;text-align:left;vertical-align:top}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}th,td{border-color:#444}}"
)

MOST_LABELS, MOST_CONFUSIONS = 8, 30
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
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{_text(content['bundle'])}</title>",
        f"<style>{STYLE}</style><h1>{_text(content['bundle'])}</h1>",
        f"<p>A classifier of {len(content['labels'])} labels, trained on all {content['rows']} rows of "
        f"{_text(content['file'])}. The figures below are of rows that were held out: "
        f"{_text(content['held_out'])}. Version {content['version']}.</p>",
        f"<h2>Candidates</h2><p>The score is {content['metric']}. The star marks the one in the bundle: of those "
        "at most one standard error below "
        "the best score, and among them those taught by the fine-tuned teacher, else by the frozen one, else those "
        "that read both words and vectors (or train an encoder), if there are any, the one of the lowest log loss "
        "once calibrated. The interval is Wilson's; the deviation is that of the parts, in points.</p>",
        _grid(COLUMNS, candidate_cells(content)),
        *(
            f"<p>Not tried: {_text(one['name'])}: {_text(one['why'])}.</p>"
            for one in content["skipped"]
        ),
        *(f"<p>{_text(said)}.</p>" for said in lines(content)),
        *_test_part(content),
        "<h2>Classes</h2>",
        _grid(CLASS_COLUMNS, _class_cells(content["classes"])),
        *_confusion_part(content),
        *_sure_part(content),
    ]
    if words := content.get("words"):
        rows = [(label, ", ".join(found)) for label, found in words.items()]
        parts += ["<h2>Words that decide</h2>", _grid(("label", "words and pairs of words"), rows)]
    suspects = [
        (str(one["line"]), one["label"], one["answer"], one["text"]) for one in content["suspects"]
    ]
    parts += [
        "<h2>Rows that may be labelled wrongly</h2><p>The label given is least likely here, by a model "
        "that was not trained on the row.</p>",
        _grid(("line", "label given", "answer", "text"), suspects),
        "</html>",
    ]
    return "\n".join(parts)


CLASS_COLUMNS = ("label", "precision", "recall", "F1", "rows")


def _class_cells(classes: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (
            one["label"],
            *(f"{one[name]:.3f}" for name in ("precision", "recall", "f1")),
            str(one["rows"]),
        )
        for one in classes
    ]


def _test_part(content: dict[str, Any]) -> list[str]:
    if "test" not in content:
        return []
    test = content["test"]
    return [
        f"<h2>{_text(test['file'])}</h2>",
        *(f"<p>{_text(said)}.</p>" for said in test_lines(content)),
        _grid(CLASS_COLUMNS, _class_cells(test["classes"])),
    ]


def _confusion_part(content: dict[str, Any]) -> list[str]:
    """A table of counts; of many labels a list of what is confused most. Both fit a phone."""
    if "confusion" not in content:
        return []
    labels, table = list(content["labels"]), content["confusion"]
    title = "<h2>Which label is answered for which</h2>"
    if len(labels) > MOST_LABELS:
        rows = [(label, answer, str(n)) for n, label, answer in confusions(labels, table)]
        return [title, _grid(("label given", "answer", "rows"), rows[:MOST_CONFUSIONS])]
    cells = [
        (f"{i} {label}", *map(str, row))
        for i, (label, row) in enumerate(zip(labels, table, strict=True), 1)
    ]
    grid = _grid(("label given", *map(str, range(1, len(labels) + 1))), cells)
    return [
        f"{title}<p>Rows of each label, by the number of the label that is answered.</p>",
        grid.replace("<table>", "<table class=confusion>", 1),
    ]


def _sure_part(content: dict[str, Any]) -> list[str]:
    rows = [(f"{share:.0%}", f"{right:.1%}") for share, right in content["risk_coverage"]]
    parts = [
        f"<h2>Surest answers</h2><p>Probabilities are calibrated on the held-out rows (temperature "
        f"{content['temperature']:.2f}).</p>",
        _grid(("rows answered", "accuracy"), rows),
    ]
    if said := content.get("abstain"):
        parts.append(f"<p>{_text(abstain_line(said))}.</p>")
    return parts


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{_text(column)}" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}" for cell in row) for row in rows)
    return f"<table><tr>{head}{body}</table>"


def _text(value: object) -> str:
    return html.escape(str(value))
