"""Draw the parts of an explanation as SVG: the tree, heat maps, shaded words. Lengths are pixels."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from spacy.displacy.render import DependencyRenderer

CELL = 22
LETTER = 7.5  # approximate width at FONT
FONT = 12
MAX_LETTERS = 14  # of a word next to a heat map; the rest is cut
WEIGHT = "#1d5f8f"
FAMILY = "system-ui, sans-serif"

Row = Sequence[float]


@dataclass(frozen=True, slots=True)
class Drawing:
    """`markup` is the content of an `<svg>` of this size; `label` is for screen readers."""

    width: float
    height: float
    markup: str
    label: str

    def __str__(self) -> str:
        return self.at("")

    def at(self, place: str) -> str:
        """The element, with attributes that place it inside another."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg"{place} width="{self.width:g}" '
            f'height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-label="{escape(self.label)}" font-family="{FAMILY}" font-size="{FONT}">'
            f"{self.markup}</svg>"
        )


def stack(drawings: Sequence[Drawing], width: float, gap: float, label: str) -> Drawing:
    """Place drawings side by side, in a new row when `width` is full."""
    x = y = tallest = widest = 0.0
    placed = []
    for one in drawings:
        if x and x + one.width > width:
            x, y, tallest = 0.0, y + tallest + gap, 0.0
        placed.append(one.at(f' x="{x:g}" y="{y:g}"'))
        widest, tallest = max(widest, x + one.width), max(tallest, one.height)
        x += one.width + gap
    return Drawing(widest, y + tallest, "".join(placed), label)


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def heading(text: str, size: float = 16) -> Drawing:
    text = clean(text)
    label = text
    markup = f'<text y="{size}" font-size="{size:g}" font-weight="600" fill="currentColor">{escape(text)}</text>'
    return Drawing(LETTER * size / FONT * len(text), size * 1.4, markup, label)


def tree(displacy: Mapping[str, Any], name: str) -> Drawing:
    """displaCy's arcs, from its `manual` structure; `name` is unique in the document."""
    words = [{**word, "text": clean(word["text"])} for word in displacy["words"]]
    # displaCy escapes words but not labels
    arcs = [{**arc, "label": escape(clean(arc["label"]))} for arc in displacy["arcs"]]
    longest = max(len(word["text"]) for word in words)
    renderer = DependencyRenderer(
        {
            "distance": max(100, 9 * longest + 20),
            "word_spacing": 26,
            "arrow_spacing": 12,
            "arrow_width": 8,
            "arrow_stroke": 1.5,
            "color": "currentColor",
            "bg": "none",
            "font": FAMILY,
        }
    )
    markup = renderer.render_svg(name, words, arcs).strip()
    said = "; ".join(
        f"{words[child]['text']} is {arc['label']} of {words[head]['text']}"
        for arc in displacy["arcs"]
        for child, head in [
            (arc["start"], arc["end"]) if arc["dir"] == "left" else (arc["end"], arc["start"])
        ]
    )
    return Drawing(renderer.width, renderer.height, markup, f"Dependency tree: {said or 'no arcs'}")


def heat_map(
    name: str,
    rows: Sequence[str],
    columns: Sequence[str],
    weights: Sequence[Row],
    domain: tuple[float, float] = (0.0, 1.0),
) -> Drawing:
    """Rows attend to columns. An exact 0, if the domain begins there, is an empty, dashed cell."""
    rows, columns = [[_short(word) for word in words] for words in (rows, columns)]
    left, top = (LETTER * max(map(len, words)) + 10 for words in (rows, columns))
    top += 22  # the name
    low, high = domain
    parts = [f'<text y="14" font-weight="600" fill="currentColor">{escape(name)}</text>']
    for i, word in enumerate(rows):
        y = top + CELL * (i + 0.68)
        parts.append(_text(word, f'x="{left - 5:g}" y="{y:g}" text-anchor="end"'))
    for i, word in enumerate(columns):
        place = f"translate({left + CELL * (i + 0.68):g},{top - 5:g}) rotate(-90)"
        parts.append(_text(word, f'transform="{place}"'))
    for i, line in enumerate(weights):
        for j, value in enumerate(line):
            said = percent(value) if domain == (0.0, 1.0) else f"{value:.2f}"
            share = min(max((value - low) / (high - low), 0), 1)
            fill = (
                'fill="none" stroke-dasharray="1.5 1.5"'
                if value == 0 == low
                else f'fill="{WEIGHT}" fill-opacity="{0.04 + 0.96 * share:.3f}"'
            )
            parts.append(
                f'<rect x="{left + CELL * j:g}" y="{top + CELL * i:g}" width="{CELL - 1}" '
                f'height="{CELL - 1}" {fill} stroke="#8a949e" stroke-width="0.4">'
                f"<title>{escape(rows[i])} → {escape(columns[j])}: {said}</title></rect>"
            )
    width = max(left + CELL * len(columns), LETTER * len(name)) + 2
    return Drawing(width, top + CELL * len(rows) + 2, "".join(parts), f"Heat map: {name}")


def shaded(name: str, words: Sequence[str], weights: Row) -> Drawing:
    """The words in boxes above their weights; the heaviest is darkest."""
    words = [clean(word) for word in words]
    most = max(weights) or 1.0
    parts = [f'<text y="14" font-weight="600" fill="currentColor">{escape(name)}</text>']
    x = 0.0
    for word, weight in zip(words, weights, strict=True):
        width = max(LETTER * len(word) + 14, 46)
        parts.append(
            f'<rect x="{x:g}" y="22" width="{width:g}" height="24" rx="3" '
            f'fill="{WEIGHT}" fill-opacity="{0.04 + 0.46 * weight / most:.3f}"/>'
        )
        middle = f'x="{x + width / 2:g}" text-anchor="middle"'
        parts.append(_text(word, f'{middle} y="38"'))
        parts.append(_text(percent(weight), f'{middle} y="60" font-size="10"'))
        x += width + 4
    said = ", ".join(f"{w} {percent(v)}" for w, v in zip(words, weights, strict=True))
    return Drawing(max(x, LETTER * len(name)), 66, "".join(parts), f"{name}: {said}")


def clean(text: str) -> str:
    """Replace what XML cannot hold."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _short(word: str) -> str:
    word = clean(word)
    return word if len(word) <= MAX_LETTERS else f"{word[: MAX_LETTERS - 1]}…"


def _text(text: str, attributes: str) -> str:
    return f'<text fill="currentColor" {attributes}>{escape(text)}</text>'
