"""Lexical substitution: the places of a sentence where a word may be replaced, and the new sentence."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tools.substitutions import Substitution, Table, held_out, word_lists
from tools.wordnet import WordNet

MAX_WORDS = 70
_TOKEN = re.compile(r"[A-Za-z]+|\d+|\S")
_AN = re.compile(r"(?!uni|use|usu|eu|one|once|uk)[aeiou]|hour|hono|heir", re.IGNORECASE)
_LISTS = word_lists()
_WORDS = {name: frozenset(words.split()) for name, words in _LISTS["sentences"].items()}
_COLOURS = frozenset(_LISTS["exclusive"]["words"]["colours"].split())
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


def _compound(sentence: Sentence, place: int, net: WordNet) -> bool:
    """Whether WordNet has the word with its neighbours as one term, or a hyphen joins them."""
    if "-" in (sentence.at(place - 1), sentence.at(place + 1)) or sentence.at(place + 1) in {
        "'",
        "’",
    }:
        return True
    spans = ((place - 1, place + 1), (place, place + 2), (place - 2, place + 1), (place, place + 3))
    terms = ["_".join(sentence.lower[max(a, 0) : b]) for a, b in spans]
    singular = [term[:-1] for term in terms if term.endswith("s")]
    return any(term in net for term in (*terms, *singular) if "_" in term)


def _capital(sentence: Sentence, place: int) -> bool:
    return 0 < place < len(sentence.words) and sentence.words[place][0][0].isupper()


def _phrase_start(sentence: Sentence, place: int, net: WordNet) -> int:
    """The place before the noun phrase whose noun is at `place`."""
    start = place - 1
    while start >= 0 and (
        sentence.lower[start] in _WORDS["determiners"]
        or (
            sentence.lower[start] not in _WORDS["beside"] and _adjective(sentence.lower[start], net)
        )
    ):
        start -= 1
    return start


def _adjective(word: str, net: WordNet) -> bool:
    return net.share(word, "a") > 0.5


def _ends_phrase(sentence: Sentence, place: int) -> bool:
    after = sentence.at(place + 1)
    return after in _WORDS["after_phrase"] | {""} or (
        after.endswith("ing")
        and sentence.at(place + 2) in _WORDS["after_phrase"] | _WORDS["determiners"]
    )


def _noun(sentence: Sentence, place: int, substitution: Substitution, net: WordNet) -> bool:
    before = sentence.at(place - 1)
    if not _ends_phrase(sentence, place) or not (
        place == 0 or before in _BEFORE or _adjective(before, net)
    ):
        return False
    if substitution.kind == "exclusive":
        return sentence.at(_phrase_start(sentence, place, net)) not in _WORDS["beside"]
    return not (
        substitution.kind == "hypernym"
        and (
            sentence.at(place + 1) == "of" or before in _WORDS["relative"] or before.endswith("est")
        )
    )


def _adjectival(sentence: Sentence, place: int, net: WordNet) -> bool:
    before, after = sentence.at(place - 1), sentence.at(place + 1)
    if (after in _WORDS["people"] and sentence.lower[place] in _COLOURS) or (
        after,
        sentence.at(place + 2),
    ) == ("and", "white"):
        return False
    if before not in _BEFORE_ADJECTIVE and place > 0 and not _adjective(before, net):
        return False
    if after in _WORDS["after_phrase"]:
        return before not in _WORDS["determiners"]
    return net.share(net.singular(after) or after, "n") > 0.5


def _number(sentence: Sentence, place: int) -> bool:
    before, after = sentence.at(place - 1), sentence.at(place + 1)
    return before not in _WORDS["before_number"] and after not in _WORDS["after_number"]


def _fits(sentence: Sentence, place: int, substitution: Substitution, net: WordNet) -> bool:
    """Whether the word is used here as the substitution takes it."""
    if substitution.place == "name":
        return sentence.words[place][0][0].isupper() and not (
            _capital(sentence, place + 1) or (_capital(sentence, place - 1))
        )
    if any(_capital(sentence, near) for near in (place - 1, place, place + 1)):
        return False
    if substitution.person and not _WORDS["gendered"].isdisjoint(sentence.lower):
        return False
    match substitution.place:
        case "noun":
            return _noun(sentence, place, substitution, net)
        case "adjective":
            return _adjectival(sentence, place, net)
        case "number":
            return _number(sentence, place)
        case "verb":
            return sentence.at(place + 1) in _WORDS["after_phrase"] - {"for"}
        case _:
            return True


def substituted(sentence: Sentence, place: int, new: str) -> str:
    """The sentence with the token at `place` replaced; capital and a/an agree."""
    old = sentence.words[place]
    new = new[0].upper() + new[1:] if old[0][0].isupper() else new
    start, end = old.span()
    head = sentence.text[:start]
    article = re.search(r"\b(a|an|A|An) $", head)
    if article:
        agreeing = article[1][0] + ("n" if _AN.match(new) else "")
        head = head[: article.start()] + agreeing + " "
    return head + new + sentence.text[end:]


def _digits(sentence: Sentence, place: int, dev: bool) -> Iterator[Substitution]:
    """Other numbers for one in digits."""
    start, end = sentence.words[place].span()
    word = sentence.lower[place]
    alone = sentence.text[start - 1] == " " and re.match(
        r"[.,;)]?(\s|$)", sentence.text[end : end + 2]
    )
    if alone and len(word) <= 4 and 2 < int(word) < 2100 and held_out(word) == dev:
        for step in (-20, -12, -7, -3, -2, 2, 3, 5, 9, 14, 30):
            new = str(int(word) + step)
            if int(new) > 1 and held_out(new) == dev:
                yield Substitution(new, "exclusive", "number", (word, new))


def candidates(
    sentence: Sentence, words: Table, net: WordNet, *, dev: bool
) -> Iterator[tuple[int, Substitution]]:
    """(place, substitution) of every one whose label is known."""
    for place, word in enumerate(sentence.lower):
        options = words.get(word, ()) or list(
            _digits(sentence, place, dev) if word.isdecimal() else ()
        )
        if not options or sentence.lower.count(word) > 1 or _compound(sentence, place, net):
            continue
        fitting: dict[tuple[str, str, bool], bool] = {}
        for substitution in options:
            use = substitution.place, substitution.kind, substitution.person
            if use not in fitting:
                fitting[use] = _fits(sentence, place, substitution, net)
            if fitting[use] and substitution.new.lower() not in sentence.lower:
                yield place, substitution
