"""The label of a pair that names two things in a relation, and the other way round in the hypothesis.

"Ann is older than Bob." entails "Bob is younger than Ann.", and "The lamp is above the desk." contradicts "The desk is
above the lamp.". An NLI model answers both at random. docs/notes/nli.md has what this is worth.
"""

from itertools import product
from typing import NamedTuple

from heedful.text.factuality import AUXILIARIES
from heedful.text.kinds import NLILabel
from heedful.text.opposites import are_opposites
from heedful.text.roles import NOMINATIVES

CONVERSES = {
    tuple(relation.split()): tuple(converse.split())
    for pair in (
        *("above / below", "over / under", "before / after", "in front of / behind"),
        *("north of / south of", "east of / west of", "to the left of / to the right of"),
        *("met / met", "married to / married to", "borders / borders", "equals / equals"),
        *("next to / next to", "similar to / similar to", "resembles / resembles"),
    )
    for relation, converse in (pair.split(" / "), pair.split(" / ")[::-1])
}
"""Relations of one thing to another, and those of the other to the one."""
LONGEST = {relation: max(relation, key=len) for relation in CONVERSES}
RELATING = {"than", *LONGEST.values()}
"""Words without which a text has no relation."""
DEGREES = {"more": 1, "less": -1, "fewer": -1}
ONE_FORM = NOMINATIVES | {"am": "is", "are": "is", "'m": "is"}
"""Forms of one word on the two sides of a relation."""
OWNERS = {"mine": "my", "yours": "your", "ours": "our", "theirs": "their", "hers": "her"}


class Relation(NamedTuple):
    """Of "Ann has longer hair than Bob": (ann has, (longer,), hair, bob, 1)."""

    before: list[str]
    """The first thing and the verb."""
    words: tuple[str, ...]
    between: list[str]
    after: list[str]
    """The second thing."""
    degree: int
    """-1 of "less"."""


def told_by_relation(given: list[str], said: list[str]) -> NLILabel | None:
    """The label of "Ann is older than Bob." with "Bob is younger than Ann." or "Bob is older than Ann."."""
    first = _relation(given)
    second = first and _relation(said)
    if not first or not second or first.between != second.between:
        return None
    if not _are_exchanged(first, second):
        return None
    is_same = first.words == second.words
    if CONVERSES.get(first.words) == second.words or (is_same and first.degree != second.degree):
        return "entailment"
    if is_same:
        return "contradiction"
    is_converse = first.degree == second.degree and are_opposites(first.words, second.words)
    return "entailment" if is_converse else None


def _are_exchanged(first: Relation, second: Relation) -> bool:
    """Whether the two things have changed places; the words before and after both may be the same."""
    for start, end in product(
        _common(first.before, second.before), _common(first.after[::-1], second.after[::-1])
    ):
        before, after = first.before[start:], first.after[: len(first.after) - end]
        last = second.after[: len(second.after) - end]
        for stop in range(1, len(before) + 1):
            thing, verb = before[:stop], before[stop:]
            for other in (after, _whole(after, thing)):
                is_there = second.before[start:] == [*other, *verb]
                if is_there and thing in (last, _whole(last, other)):
                    return True
    return False


def _common(words: list[str], others: list[str]) -> range:
    """The numbers of leading words that are the same: 0, 1 and so on."""
    pairs = enumerate(zip(words, others, strict=False))
    return range(next((i for i, (one, other) in pairs if one != other), 0) + 1)


def _relation(words: list[str]) -> Relation | None:
    """The only comparison of a text, or the only relation in place or time; None without one."""
    words = [ONE_FORM.get(word, word) for word in words]
    if words.count("than") == 1:
        end = words.index("than")
        degrees = [i for i in range(1, end) if words[i] in DEGREES]
        places = degrees or [i for i in range(1, end) if words[i].endswith("er")]
        if not places:
            return None
        place, after = places[-1], words[end + 1 :]
        if after[1:] and after[-1] in AUXILIARIES:  # "than she did"
            after.pop()
        stop = end if words[place] in DEGREES else place + 1
        compared = tuple(words[place + (words[place] in DEGREES) : stop])
        degree = DEGREES.get(words[place], 1)
        return Relation(words[:place], compared, words[stop:end], after, degree)
    found = [
        Relation(words[:i], relation, [], words[i + len(relation) :], 1)
        for relation, longest in LONGEST.items()
        if longest in words
        for i in range(1, len(words) - len(relation))
        if tuple(words[i : i + len(relation)]) == relation
    ]
    return found[0] if len(found) == 1 else None


def _whole(thing: list[str], other: list[str]) -> list[str]:
    """The thing with the noun of the other: next to "your red room", "mine" is "my room", "the blue one" a room."""
    if len(thing) == 1 and thing[0] in OWNERS:
        return [OWNERS[thing[0]], other[-1]]
    if thing[1:] and thing[-1] == "one":
        return [*thing[:-1], other[-1]]
    return [*thing, other[-1]] if thing[-1:] == ["'s"] else thing
