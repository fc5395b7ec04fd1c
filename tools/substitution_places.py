"""Lexical substitution: where in a sentence a word may be replaced by another, and the sentence with it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tools.substitutions import Substitution, Table, held_out, own_words
from tools.wordnet import WordNet

MAX_WORDS = 70
_TOKEN = re.compile(r"[A-Za-z]+|\d+|\S")
_AN = re.compile(r"(?!uni|use|usu|eu|one|once|uk)[aeiou]|hour|hono|heir", re.IGNORECASE)
_OWN = own_words()
_WORDS = {name: frozenset(words.split()) for name, words in _OWN["sentences"].items()}
_COLOURS = frozenset(_OWN["exclusive"]["words"]["colours"].split())
_BEFORE = _WORDS["determiners"] | _WORDS["prepositions"]
_BEFORE_ADJECTIVE = (_BEFORE - {"and"}) | _WORDS["before_adjective"]


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    words: tuple[re.Match[str], ...]
    lower: tuple[str, ...]

    def at(self, place: int) -> str:
        """The lower-case token, or "" beyond either end."""
        return self.lower[place] if 0 <= place < len(self.lower) else ""


def sentences(texts: Iterable[str]) -> Iterator[Sentence]:
    """The distinct texts that are statements without negation, condition or choice."""
    for text in dict.fromkeys(map(str.strip, texts)):
        words = tuple(_TOKEN.finditer(text))
        lower = tuple(word[0].lower() for word in words)
        if (
            4 <= len(words) <= MAX_WORDS
            and text[:1].isupper()
            and _WORDS["left_out"].isdisjoint(lower)
        ):
            yield Sentence(text, words, lower)


def _compound(one: Sentence, place: int, net: WordNet) -> bool:
    """Whether WordNet has the word with its neighbours as one term, or a hyphen joins them."""
    if "-" in (one.at(place - 1), one.at(place + 1)) or one.at(place + 1) in {"'", "’"}:
        return True
    spans = ((place - 1, place + 1), (place, place + 2), (place - 2, place + 1), (place, place + 3))
    terms = ["_".join(one.lower[max(a, 0) : b]) for a, b in spans]
    singular = [term[:-1] for term in terms if term.endswith("s")]
    return any(term in net for term in (*terms, *singular) if "_" in term)


def _capital(one: Sentence, place: int) -> bool:
    return 0 < place < len(one.words) and one.words[place][0][0].isupper()


def _phrase_start(one: Sentence, place: int, net: WordNet) -> int:
    """The place before the noun phrase whose noun is at `place`."""
    start = place - 1
    while start >= 0 and (
        one.lower[start] in _WORDS["determiners"]
        or (one.lower[start] not in _WORDS["beside"] and _adjective(one.lower[start], net))
    ):
        start -= 1
    return start


def _adjective(word: str, net: WordNet) -> bool:
    return net.share(word, "a") > 0.5


def _ends_phrase(one: Sentence, place: int) -> bool:
    after = one.at(place + 1)
    return after in _WORDS["after_phrase"] | {""} or (
        after.endswith("ing")
        and one.at(place + 2) in _WORDS["after_phrase"] | _WORDS["determiners"]
    )


def _noun(one: Sentence, place: int, found: Substitution, net: WordNet) -> bool:
    before = one.at(place - 1)
    if not _ends_phrase(one, place) or not (
        place == 0 or before in _BEFORE or _adjective(before, net)
    ):
        return False
    if found.kind == "exclusive":
        return one.at(_phrase_start(one, place, net)) not in _WORDS["beside"]
    return not (
        found.kind == "hypernym"
        and (one.at(place + 1) == "of" or before in _WORDS["relative"] or before.endswith("est"))
    )


def _adjectival(one: Sentence, place: int, net: WordNet) -> bool:
    before, after = one.at(place - 1), one.at(place + 1)
    if (after in _WORDS["people"] and one.lower[place] in _COLOURS) or (
        after,
        one.at(place + 2),
    ) == ("and", "white"):
        return False
    if before not in _BEFORE_ADJECTIVE and place > 0 and not _adjective(before, net):
        return False
    if after in _WORDS["after_phrase"]:
        return before not in _WORDS["determiners"]
    return net.share(net.singular(after) or after, "n") > 0.5


def _number(one: Sentence, place: int) -> bool:
    before, after = one.at(place - 1), one.at(place + 1)
    return before not in _WORDS["before_number"] and after not in _WORDS["after_number"]


def _fits(one: Sentence, place: int, found: Substitution, net: WordNet) -> bool:
    """Whether the word is used here as the substitution takes it."""
    if found.place == "name":
        return one.words[place][0][0].isupper() and not (
            _capital(one, place + 1) or (_capital(one, place - 1))
        )
    if any(_capital(one, near) for near in (place - 1, place, place + 1)):
        return False
    if found.person and not _WORDS["gendered"].isdisjoint(one.lower):
        return False
    match found.place:
        case "noun":
            return _noun(one, place, found, net)
        case "adjective":
            return _adjectival(one, place, net)
        case "number":
            return _number(one, place)
        case "verb":
            return one.at(place + 1) in _WORDS["after_phrase"] - {"for"}
        case _:
            return True


def substituted(one: Sentence, place: int, new: str) -> str:
    """The sentence with the token at `place` replaced; capital and a/an agree."""
    old = one.words[place]
    new = new[0].upper() + new[1:] if old[0][0].isupper() else new
    start, end = old.span()
    head = one.text[:start]
    article = re.search(r"\b(a|an|A|An) $", head)
    if article:
        agreeing = article[1][0] + ("n" if _AN.match(new) else "")
        head = head[: article.start()] + agreeing + " "
    return head + new + one.text[end:]


def _digits(one: Sentence, place: int, dev: bool) -> Iterator[Substitution]:
    """Other numbers for one in digits."""
    start, end = one.words[place].span()
    word = one.lower[place]
    alone = one.text[start - 1] == " " and re.match(r"[.,;)]?(\s|$)", one.text[end : end + 2])
    if alone and len(word) <= 4 and 2 < int(word) < 2100 and held_out(word) == dev:
        for step in (-20, -12, -7, -3, -2, 2, 3, 5, 9, 14, 30):
            new = str(int(word) + step)
            if int(new) > 1 and held_out(new) == dev:
                yield Substitution(new, "exclusive", "number", (word, new))


def candidates(
    one: Sentence, words: Table, net: WordNet, *, dev: bool
) -> Iterator[tuple[int, Substitution]]:
    """(place, substitution) of every one whose label is known."""
    for place, word in enumerate(one.lower):
        options = words.get(word, ()) or list(_digits(one, place, dev) if word.isdecimal() else ())
        if not options or one.lower.count(word) > 1 or _compound(one, place, net):
            continue
        fitting: dict[tuple[str, str, bool], bool] = {}
        for found in options:
            use = found.place, found.kind, found.person
            if use not in fitting:
                fitting[use] = _fits(one, place, found, net)
            if fitting[use] and found.new.lower() not in one.lower:
                yield place, found
