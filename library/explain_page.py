"""An answer of /explain as one file: a page that loads nothing from elsewhere, or an SVG.

The page holds the service's own drawing code, D3 and the answer as JSON.
"""

import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from heedful.app.routes.demo_page import STATIC
from heedful.library import explain_svg
from heedful.library.explain_svg import Drawing
from heedful.runtime.errors import BadInput

Answer = Mapping[str, Any]
"""The fields of /explain's answer (docs/explain.md); arrays may stand for lists."""

WIDTH, GAP, MARGIN = 1160.0, 18.0, 20.0
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{priors}</p>
<noscript>The pictures need JavaScript.</noscript>
<div id="answer"></div>
</main>
<script type="application/json" id="data">{data}</script>
<script>{d3}</script>
<script type="module">
{draw}
const answer = JSON.parse(document.getElementById("data").textContent);
document.getElementById("answer").append(...judgement(answer, {several}), ...pictures(answer));
</script>
</body>
</html>
"""


def html(answer: Answer, *, several: bool = False) -> str:
    """The page; its policy lets it load nothing. `several`: a text may have several labels."""
    data = json.dumps(answer, default=_plain)
    return PAGE.format(
        title=escape(explain_svg.clean(_title(answer))),
        priors=escape(_priors(answer)),
        data=data.replace("<", "\\u003c"),  # no text can end the script
        style=_static("page.css"),
        d3=_static("vendor/d3.min.js"),
        draw=_static("draw.js"),
        several=json.dumps(several),
    )


def standalone_svg(answer: Answer, *, several: bool = False) -> str:
    """One drawing on white. `several`: a text may have several labels."""
    parts = [explain_svg.heading(_title(answer), 20), explain_svg.heading(_priors(answer), 12)]
    if "prediction" in answer:
        found = answer["prediction"]
        labels, scores = zip(*found["scores"].items(), strict=True)
        parts.append(explain_svg.shaded(f"Prediction: {_said(found, several)}", labels, scores))
    if "relatedness" in answer:
        parts.append(explain_svg.heading(f"Relatedness: {answer['relatedness']:.2f}, of 1 to 5"))
    for heading, wide, maps in _sections(answer):
        parts.extend([explain_svg.heading(heading), *wide])
        if maps:
            parts.append(explain_svg.stack(maps, WIDTH, GAP, "Heat maps"))
    whole = explain_svg.stack(parts, 0.0, GAP, _title(answer))
    width, height = whole.width + 2 * MARGIN, whole.height + 2 * MARGIN
    ground = f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>'
    place = f' x="{MARGIN:g}" y="{MARGIN:g}" color="#1a2129"'
    return f"{Drawing(width, height, ground + whole.at(place), whole.label)}\n"


FORMATS = {".html": html, ".svg": standalone_svg}


def check_suffix(file: Path) -> None:
    """Raise BadInput for a file that is no page and no SVG by its name."""
    if file.suffix not in FORMATS:
        raise BadInput(f"{file}: the suffix must be one of {', '.join(FORMATS)}", param="file")


def _plain(value: Any) -> Any:
    """An array as what JSON holds."""
    return value.tolist()


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _title(answer: Answer) -> str:
    return f"What {answer['model']} attends to"


def _priors(answer: Answer) -> str:
    """The priors as they were used."""
    named = {
        name: ("on" if value else "off") if isinstance(value, bool) else f"{value:g}"
        for name, value in answer["priors"].items()
    }
    return "Priors: " + (", ".join(f"{name} {value}" for name, value in named.items()) or "none")


def _said(prediction: Answer, several: bool) -> str:
    """The label, or with `several` those of 0.5 and more, as in `draw.js`."""
    if not several:
        return prediction["label"] or "none, the model abstains"
    likely = {label: score for label, score in prediction["scores"].items() if score >= 0.5}
    return ", ".join(sorted(likely, key=lambda label: -likely[label])) or "none is probable enough"


def _sections(answer: Answer) -> Iterator[tuple[str, list[Drawing], list[Drawing]]]:
    """Heading, drawings of full width, heat maps: for each sentence, then between the two."""
    for i, one in enumerate(answer["sentences"]):
        words = [token["text"] for token in one["tokens"]]
        wide = [explain_svg.tree(one["tree"]["displacy"], f"tree-{i}")]
        wide += [
            explain_svg.shaded(_named(weights["name"], kind), words, weights["weights"])
            for kind in ("pooling", "gate")
            for weights in one[kind]
        ]
        maps = [
            explain_svg.heat_map(
                named["name"],
                words if len(named["weights"]) == len(words) else ["sentence"],
                words,
                named["weights"],
            )
            for named in one["maps"]
        ]
        yield one["text"], wide, maps
    if "similarity" in answer:
        rows, columns = ([token["text"] for token in one["tokens"]] for one in answer["sentences"])
        across = explain_svg.heat_map(
            "Cosine of each two tokens", rows, columns, answer["similarity"], (-1.0, 1.0)
        )
        yield "Between the two", [], [across]


def _named(name: str, kind: str) -> str:
    return name if kind in name else f"{name} ({kind})"
