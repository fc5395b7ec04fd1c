"""Who does what to whom, as the dependency tree tells.

"Alice paid Bob." and "Bob paid Alice." have the same words, and so nearly the same vector: an NLI model takes one for
the other. docs/notes/nli.md has what comparing their roles is worth.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from heedful.text.parse import Parse

AGENTS = frozenset(("nsubj", "obl:agent"))
PATIENTS = frozenset(("obj", "iobj", "nsubj:pass"))
"""Relations of Universal Dependencies."""
RELATIVES = frozenset(("who", "that", "which"))
NOMINATIVES = {"him": "he", "her": "she", "them": "they", "me": "i", "us": "we", "whom": "who"}
SYMMETRIC_PREPOSITIONS = frozenset(("with", "near", "beside", "between", "against", "like", "as"))
SYMMETRIC_VERBS = ("meet", "met", "marr", "resembl", "equal", "match", "border")
"""Beginnings of verbs whose two roles may be exchanged."""
MIN_STEM = 3
"""Verbs that begin with these letters, and more if they are longer, are forms of one verb."""


class Role(NamedTuple):
    """Who does what to whom, in lower case: "Ann wrote to Bob" is (ann, wrote, bob, ""), "to" is as no preposition."""

    agent: str
    verb: str
    patient: str
    preposition: str


def are_roles_exchanged(premise: Parse, hypothesis: Parse) -> bool:
    """Whether the agent of one of the hypothesis's verbs is its patient in the premise, and its patient the agent.

    Never without a tree, nor of a premise that has the hypothesis word by word.
    """
    exchanged = [role for role in _roles(hypothesis) if not role.verb.startswith(SYMMETRIC_VERBS)]
    if not exchanged or hypothesis.text.rstrip(" .!?").lower() in premise.text.lower():
        return False
    given = set(_roles(premise))
    said = {(role.agent, role.patient) for role in given}
    return any(
        (role.agent, role.patient) not in said
        and any(_is_exchanged(role, other) for other in given)
        for role in exchanged
    )


def _is_exchanged(role: Role, other: Role) -> bool:
    stem = max(MIN_STEM, min(len(role.verb), len(other.verb)) - 3)
    return (
        role.agent == other.patient
        and role.patient == other.agent
        and role.preposition == other.preposition
        and role.verb[:stem] == other.verb[:stem]
    )


def _roles(parse: Parse) -> Iterator[Role]:
    heads, deps = parse.heads.tolist(), parse.deps
    if AGENTS.isdisjoint(deps):
        return
    words = [NOMINATIVES.get(word, word) for word in map(str.lower, parse.tokens)]
    prepositions: dict[int, str] = {}
    joined: dict[int, list[int]] = defaultdict(list)
    for place, (head, dep) in enumerate(zip(heads, deps, strict=True)):
        if dep == "case":
            prepositions[head] = "" if words[place] == "to" else words[place]
        elif dep == "conj":
            joined[head].append(place)
    agents: dict[int, list[str]] = defaultdict(list)
    patients: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for place, (head, dep) in enumerate(zip(heads, deps, strict=True)):
        preposition = prepositions.get(place, "")
        names = [words[each] for each in (place, *joined[place])]
        if dep in AGENTS or dep in PATIENTS:
            if words[place] in RELATIVES and deps[head] == "acl:relcl":
                names = [words[heads[head]]]
            if dep in AGENTS:
                agents[head] += names
            else:
                patients[head] += [(name, "") for name in names]
        elif dep == "obl" and preposition not in SYMMETRIC_PREPOSITIONS:
            patients[head] += [(name, preposition) for name in names]
        elif dep == "nmod" and not preposition and deps[head] == "obj" and place in prepositions:
            patients[heads[head]] += [(name, "") for name in names]
    for verb, names in agents.items():
        for patient, preposition in patients[verb]:
            yield from (
                Role(agent, words[verb], patient, preposition)
                for agent in names
                if agent != patient
            )
