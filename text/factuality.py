"""Whether a premise says as a fact what a hypothesis says in its words, as the dependency tree tells.

"She thinks the bank is closed." and "If the bank is closed, we will wait." hold the words of "The bank is closed.", and
"The soup was hot and the tea was cold." those of "The soup was cold.": an NLI model takes what is copied for what is
said (McCoy et al. 2019). docs/notes/nli.md has what this is worth.
"""

from collections.abc import Iterable, Iterator, Mapping, Set

from heedful.text.language import FUNCTION_WORDS
from heedful.text.opposites import NEGATIONS, base_forms
from heedful.text.pairs import words_of
from heedful.text.parse import Parse

_NON_FACTIVE = (
    "advise agree allege argue ask assume attempt believe claim decide deny doubt dream encourage "
    "expect fail fear hesitate hope imagine insist intend need offer order plan predict pretend "
    "promise propose refuse report say suggest suspect think threaten told try used want wish"
)
NON_FACTIVE = frozenset(_NON_FACTIVE.split())
"""Verbs whose clause may be false."""
CONDITIONS = frozenset(("if", "unless", "whether"))
MODALS = frozenset(
    ("may", "might", "can", "ca", "could", "will", "wo", "would", "shall", "should", "'ll", "'d")
)
AUXILIARIES = MODALS | {
    *("am", "is", "are", "was", "were", "do", "does", "did", "has", "have", "had")
}
EXCEPTIONS = NEGATIONS | {"except", "excluding", "apart", "instead", "or", "either"}
"""Words below a noun that has no part in what is said: "apples, not pears", "everyone except John"."""
ARGUMENTS = ("nsubj", "obj", "obl")
PRONOUNS = frozenset(
    ("i", "you", "he", "she", "it", "we", "they", "who", "that", "which", "this", "there")
)
"""They may stand for another subject."""


def is_stated(premise: Parse, hypothesis: Parse) -> bool:
    """Whether the premise says as a fact what the hypothesis says; True where the tree does not tell."""
    if not premise.deps or not hypothesis.deps:
        return True
    if _is_question(premise) and not _is_question(hypothesis):
        given = set().union(*map(base_forms, words_of(premise.tokens)))
        said = set(words_of(hypothesis.tokens)) - FUNCTION_WORDS
        if all(not given.isdisjoint(base_forms(word)) for word in said):
            return False
    places = _copied(premise, hypothesis)
    heads, deps = hypothesis.heads.tolist(), hypothesis.deps
    roots = [word for word in places if heads[word] == word]
    if len(roots) != 1:
        return True
    (root,) = roots
    arguments = {
        places[word]: deps[word].startswith("nsubj") and word < root
        for word in places
        if heads[word] == root and deps[word].startswith(ARGUMENTS)
    }
    clauses = _Clauses(premise, frozenset(places.values()))
    return (
        not clauses.is_hypothetical(places[root])
        and not any(clauses.has(word, EXCEPTIONS) for word in arguments)
        and all(
            clauses.have_subject(subject, places[root], arguments)
            for subject, is_subject in arguments.items()
            if is_subject
        )
    )


class _Clauses:
    """A premise, and the places of its words that the hypothesis has."""

    def __init__(self, premise: Parse, kept: Set[int]) -> None:
        self._words = [token.lower() for token in premise.tokens]
        self._heads, self._deps, self._kept = premise.heads.tolist(), premise.deps, kept
        self._below: list[list[int]] = [[] for _ in self._words]
        for word, head in enumerate(self._heads):
            if word != head:
                self._below[head].append(word)

    def has(self, word: int, some: Set[str]) -> bool:
        """Whether one of some words, which the hypothesis has not, depends on the word."""
        return any(self._words[i] in some and i not in self._kept for i in self._below[word])

    def is_hypothetical(self, predicate: int) -> bool:
        """Whether the predicate is reported, wished, possible or conditional."""
        clauses = [predicate, *(head for _, head in self._up(predicate))]
        return (
            self.has(predicate, MODALS)
            or any(
                self._deps[word].startswith("advcl") and self.has(word, CONDITIONS)
                for word in (*clauses, *self._below[predicate])
            )
            or any(
                self._deps[word] in ("ccomp", "xcomp")
                and head not in self._kept
                and not base_forms(self._words[head]).isdisjoint(NON_FACTIVE)
                for word, head in self._up(predicate)
            )
        )

    def have_subject(self, subject: int, predicate: int, arguments: Iterable[int]) -> bool:
        """Whether the predicate and its other arguments are not those of another subject."""
        first = self._first(subject)
        names = {self._words[subject], self._words[first]}
        is_part = any(self._words[i] == "of" for i in self._below[first])  # "a group of people"
        if is_part or self._words[subject] in PRONOUNS:
            return True
        objects = [self._first(word) for word in arguments if word != subject]
        for word in (predicate, *(self._heads[word] for word in objects)):
            others = [i for i in self._below[word] if self._deps[i].startswith("nsubj")]
            known = names.union(PRONOUNS, *[{self._words[i]} for i in objects])
            if others and known.isdisjoint(self._words[i] for i in others):
                return False
        return True

    def _first(self, word: int) -> int:
        """The first of the words that "and" joins."""
        while self._deps[word] == "conj":
            word = self._heads[word]
        return word

    def _up(self, word: int) -> Iterator[tuple[int, int]]:
        """The word and its head, the head and its own, and so on."""
        while self._heads[word] != word:
            yield word, self._heads[word]
            word = self._heads[word]


def _is_question(parse: Parse) -> bool:
    """Whether the text asks whether something is so: "Is Tim married?"."""
    tokens = [token.lower() for token in parse.tokens]
    return tokens[-1:] == ["?"] and tokens[0] in AUXILIARIES and NEGATIONS.isdisjoint(tokens)


def _copied(premise: Parse, hypothesis: Parse) -> Mapping[int, int]:
    """The place in the premise of each word of the hypothesis, by its place there.

    Empty unless the words are a part of the premise without a gap, or with one; a word may have another form.
    """
    texts = [list(map(str.lower, parse.tokens)) for parse in (premise, hypothesis)]
    new = [word for word in set(texts[1]).difference(texts[0]) if _is_word(word)]
    if len(new) > 1:
        return {}
    given, said = ([i for i, word in enumerate(text) if _is_word(word)] for text in texts)
    if not 2 <= len(said) < len(given):
        return {}

    def are_same(first: int, second: int) -> bool:
        word, other = texts[1][first], texts[0][second]
        return word == other or not base_forms(word).isdisjoint(base_forms(other))

    begin = end = 0
    while begin < len(said) and are_same(said[begin], given[begin]):
        begin += 1
    while end < len(said) - begin and are_same(said[-1 - end], given[-1 - end]):
        end += 1
    if begin + end == len(said):
        return dict(zip(said, [*given[:begin], *given[len(given) - end :]], strict=True))
    for start in range(1, len(given) - len(said)):
        part = given[start : start + len(said)]
        if all(map(are_same, said, part)):
            return dict(zip(said, part, strict=True))
    return {}


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[-1].isalnum()
