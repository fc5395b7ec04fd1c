"""Whether a hypothesis says the opposite of its premise in the premise's words.

Sentences that differ in a single word have nearly the same vector. docs/notes/nli.md has what comparing the words is
worth.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from heedful.text.pairs import NOT, words_of
from heedful.text.parse import Parse

NEGATIONS = frozenset(
    ("not", "n't", "no", "never", "nobody", "none", "nothing", "without", "neither", "nor")
)
DENIALS = NOT | {"do", "does", "did"}
NEGATIVE = ("un", "in", "im", "il", "ir", "dis")
"""Prefixes."""
BOUNDS: dict[tuple[str, ...], tuple[float, float]] = {
    ("at", "least"): (0, math.inf),
    ("more", "than"): (1, math.inf),
    ("over",): (1, math.inf),
    ("above",): (1, math.inf),
    ("no", "fewer", "than"): (0, math.inf),
    ("no", "less", "than"): (0, math.inf),
    ("at", "most"): (-math.inf, 0),
    ("no", "more", "than"): (-math.inf, 0),
    ("less", "than"): (-math.inf, -1),
    ("fewer", "than"): (-math.inf, -1),
    ("under",): (-math.inf, -1),
    ("below",): (-math.inf, -1),
    ("exactly",): (0, 0),
    (): (0, 0),
}
"""Words before a number, and the ends of what they admit: the number (0), next to it (1 or -1), or none."""
OPEN_BOUNDS = {words[-1] for words, ends in BOUNDS.items() if math.inf in map(abs, ends)}
"""Last words of bounds that admit other numbers too: "at least 3" is also at least 2."""
IRREGULAR = {
    form: base
    for base, forms in {
        **{"be": "am is are was were been", "begin": "began begun", "break": "broke broken"},
        **{"bring": "brought", "build": "built", "buy": "bought", "catch": "caught"},
        **{"choose": "chose chosen", "come": "came", "do": "did done", "drink": "drank drunk"},
        **{"drive": "drove driven", "eat": "ate eaten", "fall": "fell fallen", "feed": "fed"},
        **{"find": "found", "fly": "flew flown", "forget": "forgot forgotten", "get": "got"},
        **{"give": "gave", "go": "went gone", "have": "has had", "hear": "heard", "hold": "held"},
        **{"keep": "kept", "know": "knew known", "leave": "left", "lend": "lent", "lose": "lost"},
        **{"make": "made", "meet": "met", "pay": "paid", "ride": "rode ridden", "run": "ran"},
        **{"say": "said", "see": "saw seen", "sell": "sold", "send": "sent", "sing": "sang sung"},
        **{"sit": "sat", "sleep": "slept", "speak": "spoke spoken", "spend": "spent"},
        **{"stand": "stood", "steal": "stole stolen", "swim": "swam swum", "take": "took taken"},
        **{"teach": "taught", "tell": "told", "think": "thought", "throw": "threw thrown"},
        **{"wear": "wore worn", "win": "won", "write": "wrote written"},
    }.items()
    for form in forms.split()
}
ENDINGS = ("s", "es", "ies", "d", "ed", "ied", "en", "ing")


def _read(pairs: Iterable[str]) -> dict[str, set[str]]:
    opposites: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        first, second = pair.split()
        opposites[first].add(second)
        opposites[second].add(first)
    return dict(opposites)


OPPOSITES = _read((Path(__file__).parent / "opposites.txt").read_text().splitlines())
"""Base forms of words, and of each its opposites."""


def is_opposite(premise: Parse, hypothesis: Parse) -> bool:
    """Whether the hypothesis is a part of the premise with one word replaced by its opposite, or by another number.

    The part has the premise's words in their order, perhaps with gaps, and as many negations as the premise.
    """
    given, words = words_of(premise.tokens), words_of(hypothesis.tokens)
    others = set(words).difference(given)
    if len(others) != 1:
        return False
    (other,) = others
    opposites = set().union(*[OPPOSITES.get(base, ()) for base in base_forms(other)])
    place = words.index(other)
    start, stop = _reach(words[:place], given), _reach(words[:place:-1], given[::-1])
    is_number = other.isdigit() and OPEN_BOUNDS.isdisjoint(words[:place][-1:])
    negations = _negations(given) - _negations(words) + _negations([other])
    return any(
        _negations([word]) == negations
        and ((word.isdigit() and is_number) or not opposites.isdisjoint(base_forms(word)))
        for word in given[start : max(len(given) - stop, 0)]
        if word not in words
    )


def are_opposites(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether both are one word, and these are opposites, comparatives perhaps."""
    if len(first) != 1 or len(second) != 1:
        return False
    forms, others = (
        {base for stem in (word, word.removesuffix("er")) for base in base_forms(stem)}
        for (word,) in (first, second)
    )
    return any(not others.isdisjoint(OPPOSITES.get(form, ())) for form in forms)


def is_opposite_denied(given: Sequence[str], said: Sequence[str]) -> bool:
    """Whether the words of a hypothesis are the premise's with one replaced by its opposite and denied.

    What is "not cold" need not be hot, but what is "not impossible" is possible.
    """
    kept, words = ([word for word in text if word not in DENIALS] for text in (given, said))
    changed = [pair for pair in zip(kept, words, strict=False) if pair[0] != pair[1]]
    if len(kept) != len(words) or len(changed) != 1:
        return False
    ((word, other),) = changed
    if any(prefix + other == word or prefix + word == other for prefix in NEGATIVE):
        return True
    return NOT.isdisjoint(given) and are_opposites([word], [other])


def _negations(words: Sequence[str]) -> int:
    return sum(word in NEGATIONS for word in words)


def base_forms(word: str) -> set[str]:
    """The word, and what it may be a form of."""
    bases = {word, IRREGULAR.get(word, word)}
    for ending in ENDINGS:
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            bases |= {stem, f"{stem}e", f"{stem}y", stem[:-1]}
    return bases


def _reach(part: Sequence[str], given: Sequence[str]) -> int:
    """How many leading words of `given` hold the part, in its order; more than there are where they do not."""
    remaining = iter(given)
    if all(word in remaining for word in part):
        return len(given) - len(list(remaining))
    return len(given) + 1
