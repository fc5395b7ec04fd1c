"""An answer of /explain as one file: a page that asks nothing of another host, or an SVG."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from heedful.cli import explain_svg
from heedful.cli.explain_svg import Drawing

Answer = Mapping[str, Any]
"""As docs/explain.md has it; arrays may stand for lists."""

WIDTH, GAP, MARGIN = 1160.0, 18.0, 20.0
STYLE = f"""
:root {{ color-scheme: light dark; }}
body {{ margin: 0 auto; padding: 1rem; max-width: 76rem; font: 16px/1.5 {explain_svg.FAMILY};
  color: #1a2129; background: #ffffff; }}
h1 {{ font-size: 1.4rem; margin: 0; }} h2 {{ font-size: 1.1rem; margin: 1.5rem 0 .5rem; }}
section {{ border-top: 1px solid #8a949e; margin-top: 1rem; }}
.drawings {{ display: flex; flex-wrap: wrap; gap: 1.1rem; align-items: flex-start; }}
.wide {{ overflow-x: auto; }}
@media (prefers-color-scheme: dark) {{
  body {{ color: #e8edf2; background: #12171c; }} .weight {{ fill: #7fbbe6; }}
}}
"""


def html(answer: Answer) -> str:
    """The page. It holds no script, and its policy lets it load nothing."""
    title = escape(explain_svg.clean(_title(answer)))
    sections = [
        f"<section><h2>{escape(explain_svg.clean(heading))}</h2>"
        + "".join(_wrapped(one) for one in wide)
        + f'<div class="drawings">{"".join(map(str, maps))}</div></section>'
        for heading, wide, maps in _sections(answer)
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{title}</h1>\n<p>{escape(_priors(answer))}</p>\n"
        + "\n".join([*map(_wrapped, _said(answer)), *sections])
        + "\n</main>\n</body>\n</html>\n"
    )


def standalone_svg(answer: Answer) -> str:
    """The same as one drawing, on white."""
    parts = [
        explain_svg.heading(_title(answer), 20),
        explain_svg.heading(_priors(answer), 12),
        *_said(answer),
    ]
    for heading, wide, maps in _sections(answer):
        parts.extend([explain_svg.heading(heading), *wide])
        if maps:
            parts.append(explain_svg.stack(maps, WIDTH, GAP, "Heat maps"))
    whole = explain_svg.stack(parts, 0.0, GAP, _title(answer))
    width, height = whole.width + 2 * MARGIN, whole.height + 2 * MARGIN
    ground = f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>'
    place = f' x="{MARGIN:g}" y="{MARGIN:g}" color="#1a2129"'
    return f"{Drawing(width, height, ground + whole.at(place), whole.label)}\n"


def _title(answer: Answer) -> str:
    return f"What {answer['model']} attends to"


def _priors(answer: Answer) -> str:
    """The priors as they were used."""
    named = {
        name: ("on" if value else "off") if isinstance(value, bool) else f"{value:g}"
        for name, value in answer["priors"].items()
    }
    return "Priors: " + (", ".join(f"{name} {value}" for name, value in named.items()) or "none")


def _said(answer: Answer) -> list[Drawing]:
    """What the model answers, where it answers anything."""
    drawings = []
    if "prediction" in answer:
        found = answer["prediction"]
        drawings.append(explain_svg.bars(f"Prediction: {found['label']}", found["scores"]))
    if "relatedness" in answer:
        drawings.append(explain_svg.heading(f"Relatedness: {answer['relatedness']:.2f}, of 1 to 5"))
    return drawings


def _sections(answer: Answer) -> Iterator[tuple[str, list[Drawing], list[Drawing]]]:
    """Heading, drawings as wide as the text, heat maps: of each sentence, then of what is between two."""
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


def _wrapped(drawing: Drawing) -> str:
    """A long sentence scrolls inside its own box, which the keyboard reaches."""
    name = escape(drawing.label.split(":")[0])
    return f'<div class="wide" tabindex="0" role="group" aria-label="{name}">{drawing}</div>'
