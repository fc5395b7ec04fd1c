"""An answer of /explain as a page in one file, which loads nothing.

It holds the drawing code of the service's page, D3, and the answer as JSON.
"""

import json
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from operator import methodcaller
from pathlib import Path
from typing import Any

from heedful.runtime.errors import BadInput

DRAWING = [
    f"{name}.js"
    for name in ("dom", "terms", "answers", "hover", "heatmap", "tree", "tokens", "pictures")
]
Answer = Mapping[str, Any]
"""The fields of /explain's answer (docs/explain.md), with arrays in place of lists."""

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
document.getElementById("answer").append(...judgement(answer, {multi_label}), ...pictures(answer));
</script>
</body>
</html>
"""


def html(answer: Answer, *, multi_label: bool = False) -> str:
    """The page, whose policy forbids loading. `multi_label`: a text may have several labels."""
    data = json.dumps(answer, default=methodcaller("tolist"))
    modules = "\n".join(map(_static, DRAWING))
    drawing = re.sub(r"^import .*;$", "", modules, flags=re.MULTILINE)  # they import each other
    return PAGE.format(
        title=escape(f"What {answer['model']} attends to"),
        priors=escape(_priors(answer)),
        data=data.replace("<", "\\u003c"),  # no text can end the script
        style=_static("page.css"),
        d3=_static("vendor/d3.min.js"),
        draw=drawing,
        multi_label=json.dumps(multi_label),
    )


def check_suffix(file: Path) -> None:
    """Raise BadInput unless the file's name ends in .html."""
    if file.suffix != ".html":
        raise BadInput(f"{file}: give a name that ends in .html", param="file")


def _static(name: str) -> str:
    return (files("heedful.app") / "static" / name).read_text(encoding="utf-8")


def _priors(answer: Answer) -> str:
    """The answer's priors, in words."""
    words = [
        f"{name} {('on' if value else 'off') if isinstance(value, bool) else f'{value:g}'}"
        for name, value in answer["priors"].items()
    ]
    return f"Priors: {', '.join(words) or 'none'}"
