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
TRANSFERS = {
    **dict.fromkeys(("sell", "sold", "buy", "bought"), "sell"),
    **dict.fromkeys(("give", "gave", "given", "get", "got", "receive"), "give"),
    **dict.fromkeys(("lend", "lent", "borrow"), "lend"),
    **dict.fromkeys(("teach", "taught", "learn", "learnt"), "teach"),
}
"""Verbs of who gives, to somebody, or who gets, from somebody; and the former's base form."""
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
    """Whether the agent of one of the hypothesis's verbs is its patient in the premise, and its patient the agent.

    Never without a tree, nor of a premise that has the hypothesis word by word.
    """
    roles = [role for role in _first_roles(hypothesis) if not role.verb.startswith(SYMMETRIC_VERBS)]
    if not roles or hypothesis.text.rstrip(" .!?").lower() in premise.text.lower():
        return False
    given = _first_roles(premise)
    said = {(role.agent, role.patient) for role in given}
    verbs: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for role in given:
        verbs[role.patient, role.agent, role.preposition].append(role.verb)
    return any(
        not base_forms(role.verb).isdisjoint(base_forms(verb))
        for role in roles
        if (role.agent, role.patient) not in said
        for verb in verbs[role.agent, role.patient, role.preposition]
    )


def _first_roles(parse: Parse) -> list[Role]:
    return list(islice(map(_of_giver, _roles(parse)), MAX_ROLES))


def _of_giver(role: Role) -> Role:
    """Of "Bob bought it from Ann" that of "Ann sold it to Bob"."""
    forms = base_forms(role.verb) & TRANSFERS.keys()
    if not forms or role.preposition not in ("", "from"):
        return role
    verb = TRANSFERS[min(forms)]
    if role.preposition:
        return Role(role.patient, verb, role.agent, "")
    return Role(role.agent, verb, role.patient, "")


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
