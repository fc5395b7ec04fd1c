"""Who does what to whom, as the dependency tree tells.

"Alice paid Bob." and "Bob paid Alice." have the same words, and so nearly the same vector: an NLI model takes one for
the other. docs/notes/nli.md has what comparing their roles is worth.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from heedful.text.opposites import base_forms
from heedful.text.parse import Parse

AGENTS = frozenset(("nsubj", "obl:agent"))
PATIENTS = frozenset(("obj", "iobj", "nsubj:pass"))
OTHERS = PATIENTS | {"obl", "nmod"}
"""Relations of Universal Dependencies; those of OTHERS that have a preposition may be patients too."""
RELATIVES = frozenset(("who", "that", "which"))
NOMINATIVES = {"him": "he", "her": "she", "them": "they", "me": "i", "us": "we", "whom": "who"}
SYMMETRIC_PREPOSITIONS = frozenset(("with", "near", "beside", "between", "against", "like", "as"))
SYMMETRIC_VERBS = ("meet", "met", "marr", "resembl", "equal", "match", "border")
"""Beginnings of verbs whose two roles may be exchanged."""
GETTING = {"buy": "sell", "get": "give", "receive": "give", "borrow": "lend", "learn": "teach"}
"""Verbs of who gets, from somebody, and what that one does."""
MODIFIERS = ("amod", "compound", "nummod", "nmod:poss")
"""Relations of words that tell two things of one name apart."""
MAX_ROLES = 256
"""Of a text. Lists of subjects and objects would have thousands."""


class Role(NamedTuple):
    """Who does what to whom, in lower case: "Ann wrote to Bob" is (ann, wrote, bob, ""), "to" is as no preposition."""

    agent: str
    verb: str
    patient: str
    preposition: str


def are_roles_exchanged(premise: Parse, hypothesis: Parse) -> bool:
    """Whether one of the hypothesis's verbs has as its agent who is only its patient in the premise, or the reverse.

    Never without a tree, nor of a premise that has the hypothesis word by word.
    """
    roles = [role for role in _first_roles(hypothesis) if not role.verb.startswith(SYMMETRIC_VERBS)]
    if not roles or hypothesis.text.rstrip(" .!?").lower() in premise.text.lower():
        return False
    given = _first_roles(premise)
    pairs = {(role.agent, role.patient) for role in given}
    agents: dict[tuple[str, str], set[str]] = defaultdict(set)
    patients: dict[tuple[str, str], set[str]] = defaultdict(set)
    for role in given:
        for key in _keys(role):
            agents[key].add(role.agent)
            patients[key].add(role.patient)
    for role in roles:
        keys = _keys(role)
        agent_does, patient_does = (
            any(name in agents[key] for key in keys) for name in (role.agent, role.patient)
        )
        agent_gets, patient_gets = (
            any(name in patients[key] for key in keys) for name in (role.agent, role.patient)
        )
        is_exchanged = (agent_gets and not agent_does) or (patient_does and not patient_gets)
        if is_exchanged and (role.agent, role.patient) not in pairs:
            return True
    return False


def _keys(role: Role) -> list[tuple[str, str]]:
    """Of roles of the same verb with the same preposition at least one is the same."""
    return [(role.preposition, form) for form in base_forms(role.verb)]


def _first_roles(parse: Parse) -> list[Role]:
    return list(islice(map(_of_giver, _roles(parse)), MAX_ROLES))


def _of_giver(role: Role) -> Role:
    """Of "Bob bought it from Ann" that of "Ann sold it to Bob"."""
    forms = base_forms(role.verb)
    if role.preposition == "from" and (getting := forms & GETTING.keys()):
        return Role(role.patient, GETTING[min(getting)], role.agent, "")
    return role


def _roles(parse: Parse) -> Iterator[Role]:
    heads, deps = parse.heads.tolist(), parse.deps
    if AGENTS.isdisjoint(deps) or OTHERS.isdisjoint(deps):
        return
    words = [NOMINATIVES.get(word, word) for word in map(str.lower, parse.tokens)]
    prepositions: dict[int, str] = {}
    joined: dict[int, list[int]] = defaultdict(list)
    modifiers: dict[int, list[str]] = defaultdict(list)
    agents: dict[int, list[int]] = defaultdict(list)
    patients: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for place, dep in enumerate(deps):
        if dep == "case":
            prepositions[heads[place]] = "" if words[place] == "to" else words[place]
        elif dep == "conj":
            joined[heads[place]].append(place)
        elif dep in MODIFIERS:
            modifiers[heads[place]].append(words[place])
    for place, dep in enumerate(deps):
        if dep not in AGENTS and dep not in OTHERS:
            continue
        verb, preposition = heads[place], prepositions.get(place, "")
        things = [place, *joined[place]]
        if dep in AGENTS or dep in PATIENTS:
            preposition = ""
            if words[place] in RELATIVES and deps[verb] == "acl:relcl":
                things = [heads[verb]]
        elif dep == "nmod":  # "sends requests to the client"
            if preposition not in ("", "from") or place not in prepositions or deps[verb] != "obj":
                continue
            verb = heads[verb]
        if dep in AGENTS:
            agents[verb] += things
        elif preposition not in SYMMETRIC_PREPOSITIONS:
            patients[verb] += [(thing, preposition) for thing in things]
    for verb, things in agents.items():
        for other, preposition in patients[verb]:
            for thing in things:
                names = words[thing], words[other]
                if names[0] == names[1]:  # "the red team", "the blue team"
                    names = " ".join(modifiers[thing]), " ".join(modifiers[other])
                if names[0] != names[1]:
                    yield Role(names[0], words[verb], names[1], preposition)
