"""Dependency trees in two standard formats: displaCy's `manual` structure and CoNLL-U."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from heedful.text.arc_parser import ROOT  # CoNLL-U writes `root`
from heedful.text.parse import Parse
from heedful.text.structure import Heads, check_heads

BOM = "\ufeff"
"""A file's byte order mark."""


def to_displacy(parse: Parse) -> dict[str, Any]:
    """The structure that `displacy.render(.., manual=True)` draws. A root has no arc."""
    arcs = [
        {
            "start": min(token, head),
            "end": max(token, head),
            "label": label,
            "dir": "left" if token < head else "right",
        }
        for token, (head, label) in enumerate(zip(parse.heads.tolist(), parse.deps, strict=True))
        if token != head
    ]
    return {"words": [{"text": token, "tag": ""} for token in parse.tokens], "arcs": arcs}


def from_displacy(tree: Mapping[str, Any]) -> Parse:
    """The parse of `words` with `text`, and `arcs`. Raises ValueError where the arcs are no forest."""
    tokens = [word["text"] for word in tree["words"]]
    heads, deps = np.arange(len(tokens)), [ROOT] * len(tokens)
    for i, arc in enumerate(tree["arcs"]):
        start, end = arc["start"], arc["end"]
        if not 0 <= start < end < len(tokens):
            raise ValueError(
                f"arcs[{i}] goes from {start} to {end}: "
                f"start must be less than end, and end less than the {len(tokens)} words"
            )
        token, head = (start, end) if arc["dir"] == "left" else (end, start)
        if heads[token] != token:
            raise ValueError(f"arcs[{i}] is the second arc that points to word {token}")
        heads[token], deps[token] = head, arc["label"]
    return build(tokens, heads, deps, [True] * len(tokens))


def to_conllu(parse: Parse) -> str:
    """CoNLL-U, split into sentences at boundaries that no arc crosses; each has one root unless trees cross."""
    lines = []
    starts = _sentences(parse.heads)
    for start, stop in pairwise([*starts, len(parse)]):
        text = parse.text[parse.starts[start] : parse.stops[stop - 1]]
        lines.append(f"# text = {' '.join(text.split())}")
        for token in range(start, stop):
            root = parse.heads[token] == token
            head = 0 if root else parse.heads[token] - start + 1
            relation = "root" if root else parse.deps[token] or "_"
            follows = token + 1 < len(parse) and parse.stops[token] == parse.starts[token + 1]
            misc = "SpaceAfter=No" if follows else "_"
            form = parse.tokens[token]
            lines.append(f"{token - start + 1}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t{misc}")
        lines.append("")
    return "".join(f"{line}\n" for line in lines)


def from_conllu(content: str) -> Parse:
    """Read ID, FORM, HEAD, DEPREL and SpaceAfter=No. Raises ValueError naming the line.

    Comments, ranges (1-2) and empty nodes (1.1) are skipped. Several sentences become one forest.
    """
    tokens: list[str] = []
    heads: list[int] = []
    deps: list[str] = []
    spaces: list[bool] = []
    rows: list[tuple[int, int]] = []  # line and HEAD of the words of a sentence
    start = 0
    for number, line in enumerate([*content.removeprefix(BOM).splitlines(), ""], 1):
        if not line.strip():
            _check_sentence(rows)
            start, rows = len(tokens), []
            continue
        columns = line.split("\t")
        if line.startswith("#") or re.fullmatch(r"\d+[-.]\d+", columns[0]):
            continue
        if len(columns) != 10:
            raise ValueError(f"line {number} has {len(columns)} columns, not 10, separated by tabs")
        if columns[0] != str(len(tokens) - start + 1):
            raise ValueError(f"line {number}: ID must be {len(tokens) - start + 1}")
        if not re.fullmatch(r"[0-9]{1,6}", columns[6]):
            raise ValueError(f"line {number}: HEAD must be a number")
        if re.search(r"\s", columns[7]):
            raise ValueError(f"line {number}: DEPREL holds white space")
        head = int(columns[6])
        rows.append((number, head))
        heads.append(len(tokens) if head == 0 else start + head - 1)
        tokens.append(columns[1])
        deps.append(ROOT if head == 0 else columns[7])
        spaces.append("SpaceAfter=No" not in columns[9].split("|"))
    if not tokens:
        raise ValueError("the tree has no token")
    return build(tokens, np.array(heads), deps, spaces)


def _check_sentence(rows: Sequence[tuple[int, int]]) -> None:
    """Raise ValueError for a HEAD outside the sentence, or equal to the word's ID. `rows` are lines with their HEAD."""
    for i, (number, head) in enumerate(rows, 1):
        if head == i:
            raise ValueError(f"line {number}: HEAD is the word's own ID: a root has HEAD 0")
        if head > len(rows):
            raise ValueError(
                f"line {number}: HEAD is {head}, but the sentence has words 1 to {len(rows)}"
            )


def build(
    tokens: Sequence[str], heads: Heads, deps: Sequence[str], spaces: Sequence[bool]
) -> Parse:
    """A parse of the tokens; `spaces`: whether a blank follows. Raises ValueError where the heads have a cycle."""
    for i, token in enumerate(tokens):
        if token.split() != [token]:
            raise ValueError(f"token {i} is {token[:50]!r}: a token is not empty and has no blank")
    for relation in set(deps):
        if not relation.isascii() and re.search("[\ud800-\udfff]", relation):
            raise ValueError("a relation holds half of a surrogate pair: send valid Unicode")
    check_heads(heads)
    with_blanks = [token + " " * space for token, space in zip(tokens, spaces, strict=True)]
    return Parse(
        text="".join(with_blanks).rstrip(" "),
        tokens=tuple(tokens),
        heads=np.asarray(heads, np.int64),
        deps=tuple(deps),
        cut=False,
    )


def _sentences(heads: Heads) -> list[int]:
    """The first token of each span that no arc leaves or enters."""
    reach = 0
    starts: list[int] = []
    spans = sorted((min(t, h), max(t, h)) for t, h in enumerate(heads.tolist()))
    for first, last in spans:
        if not starts or first > reach:
            starts.append(first)
        reach = max(reach, last)
    return starts
