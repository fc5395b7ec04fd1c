"""How an NLI model reads the two texts of a pair.

It reads them in one spelling: as typed, "2 apples" contradicts "two apples", and contractions and the full stop change
answers. It also reads the sentence of a premise that is nearest to the hypothesis alone, which it loses among others.
docs/notes/nli.md has what each is worth.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from heedful.text.language import FUNCTION_WORDS
from heedful.text.parse import Parse

UNITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBERS = {
    **{word: str(i) for i, word in enumerate((*UNITS, *TEENS), 1)},
    **{word: str(10 * i) for i, word in enumerate(TENS, 2)},
}
"""Numbers in words, and in digits; "twenty-five" is one of TENS, a hyphen and one of UNITS."""
MULTIPLIERS = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
HUNDRED = 100
NUMBER_WORDS = frozenset((*NUMBERS, *MULTIPLIERS))
_SPELLINGS = re.compile(rf"\d|{'|'.join(MULTIPLIERS)}")
_UNIT = "|".join(UNITS)
_SMALL = rf"(?:(?:{'|'.join(TENS)})(?: - (?:{_UNIT}))?|{'|'.join(TEENS)}|{_UNIT})"
_PART = rf"(?:(?:\d+|\d{{1,3}}(?:,\d{{3}})+)(?:\.\d+)?|{_SMALL})"
_TIMES = rf"(?: (?:{'|'.join(MULTIPLIERS)}))"
NUMERAL = re.compile(
    rf"(?<!\S)(?:(?:a|{_PART}){_TIMES}+(?:(?: and)? {_SMALL}{_TIMES}*)*|{_PART})(?!\S)"
)
"""A number in a text's words with blanks between them."""
SYNONYMS = {
    **{"%": "percent", "1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth"},
    **{"5th": "fifth", "6th": "sixth", "7th": "seventh", "8th": "eighth", "9th": "ninth"},
    "10th": "tenth",
    **{f"{number}th": f"{word}th" for number, word in enumerate(TEENS[1:], 11)},
    "12th": "twelfth",
    "20th": "twentieth",
}
WRITTEN_OUT = {
    f"{mark}{end}": verb
    for mark in "'\u2019"
    for end, verb in (("m", "am"), ("re", "are"), ("s", "is"), ("ve", "have"), ("ll", "will"))
}
"""Contractions, and the verbs as which they are read."""
SUBJECTS = frozenset(("he", "she", "it", "that", "there", "here", "what", "who", "where"))
"""Words after which "'s" is a verb; elsewhere it is mostly a genitive."""
NOT = frozenset(("not", "n't", "n\u2019t", "nt"))
NEGATED = {"can": "ca", "will": "wo"} | {
    verb: verb
    for verb in (
        *("is", "are", "was", "were", "do", "does", "did", "has", "have", "had"),
        *("could", "would", "should", "must", "need"),
    )
}
"""Verbs after which NOT is read as "n't", and what the tokenizer has before "n't"."""
_SPELLED = NOT | WRITTEN_OUT.keys() | SYNONYMS.keys()
ENDS, CLOSING = ".!?\u2026", frozenset(('"', "'", "\u201d", "\u2019", ")", "]"))
"""Characters of the tokens that end a sentence, and tokens that belong to the end before them."""
MIN_TOKENS = 3
"""A shorter sentence is read with the one after it."""


class Number(NamedTuple):
    place: slice
    value: Fraction


def in_pairs(
    texts: Sequence[Parse], typed: Sequence[bool], limit: int, texts_per_row: int
) -> list[Parse]:
    """The texts, those that are `typed` in one spelling and with a full stop at their ends.

    In rows of two, numbers are read as plain digits where they are spelled in two ways, and one of them in digits. The
    stop has no width, and stands behind a last word or number, unless there are `limit` tokens.
    """
    read = []
    for i, (text, is_typed) in enumerate(zip(texts, typed, strict=True)):
        other = texts[i ^ 1] if texts_per_row == 2 else None
        read.append(_with_stop(_in_one_spelling(text, other), limit) if is_typed else text)
    return read


def _in_one_spelling(text: Parse, other: Parse | None) -> Parse:
    """The text, as the `other` is spelled."""
    words = [token.lower() for token in text.tokens]
    texts = "" if other is None else f"{text.text} {other.text}"
    if _SPELLED.isdisjoint(words) and not _SPELLINGS.search(texts):
        return text
    others = [] if other is None else [token.lower() for token in other.tokens]
    tokens, joined = list(text.tokens), list[int]()
    for i, word in enumerate(words):
        previous, following = words[i - 1] if i else "", words[i + 1 : i + 2]
        is_genitive = word in ("'s", "\u2019s") and previous not in SUBJECTS
        verb = word if is_genitive else WRITTEN_OUT.get(word, word)
        if verb in NEGATED and not NOT.isdisjoint(following):
            tokens[i], tokens[i + 1] = NEGATED[verb], "n't"
        elif verb != word:
            tokens[i] = verb
        elif SYNONYMS.get(word) in others:
            tokens[i] = SYNONYMS[word]
    for place, value in _respelled(words, others):
        tokens[place.start] = _digits(value)
        joined += range(place.start + 1, place.stop)
    if tokens == list(text.tokens):
        return text
    spelled = replace(text, tokens=tuple(tokens), spans=(text.starts, text.stops))
    return spelled.without(joined) if joined else spelled


def _respelled(words: Sequence[str], other: Sequence[str]) -> list[Number]:
    """The numbers that are read as plain digits: not "one", a pronoun too, unless the other text has "1"."""
    has_digits = any(word[0].isdigit() for word in (*words, *other))
    others = {tuple(other[place]): value for place, value in numbers_of(other)}
    others.pop(("one",), None)
    return [
        number
        for number in numbers_of(words)
        if (spelling := tuple(words[number.place])) not in others
        and (spelling != ("one",) or ("1",) in others)
        and (
            number.value in others.values()
            or (others and has_digits and not spelling[0][0].isdigit())
        )
    ]


def numbers_of(words: Sequence[str]) -> list[Number]:
    """The numbers of a text: "two hundred and five", "a dozen", "1.5 million", "12,000"."""
    text = " ".join(words)
    numbers = []
    for match in NUMERAL.finditer(text):
        start = text.count(" ", 0, match.start())
        parts = match[0].split(" ")
        total, current = Fraction(0), Fraction(0)
        for part in parts:
            if factor := MULTIPLIERS.get(part):
                current = (current or Fraction(1)) * factor
                if factor > HUNDRED:
                    total, current = total + current, Fraction(0)
            elif part[0].isdigit() or part in NUMBERS:
                current += Fraction(NUMBERS.get(part, part.replace(",", "")))
        numbers.append(Number(slice(start, start + len(parts)), total + current))
    return numbers


def _digits(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else str(float(number))


def _with_stop(text: Parse, limit: int) -> Parse:
    if not text.tokens or not text.tokens[-1][-1].isalnum() or len(text.tokens) >= limit:
        return text
    roots = np.flatnonzero(text.heads == np.arange(len(text.tokens)))
    end = len(text.text)
    return replace(
        text,
        tokens=(*text.tokens, "."),
        heads=np.append(text.heads, roots[-1] if text.deps else len(text.tokens)),
        deps=(*text.deps, "punct") if text.deps else (),
        spans=([*text.starts, end], [*text.stops, end]),
    )


def nearest_sentences(texts: Sequence[Parse]) -> dict[int, Parse]:
    """Of premises and hypotheses in turn (2 N,), by row: the sentence of the premise with most of the other's words.

    Left out are rows whose premise is one sentence, and those where another sentence has a word of the hypothesis,
    other than a function word, that the nearest lacks: they have to be read together.
    """
    nearest = {}
    for row, (premise, hypothesis) in enumerate(zip(texts[::2], texts[1::2], strict=True)):
        sentences = _sentences(premise.tokens)
        if len(sentences) > 1:
            words = set(words_of(hypothesis.tokens))
            shared = [words.intersection(words_of(premise.tokens[place])) for place in sentences]
            most = max(shared, key=len)
            if most and set().union(*shared) - FUNCTION_WORDS <= most:
                others = np.delete(np.arange(len(premise.tokens)), sentences[shared.index(most)])
                nearest[row] = premise.without(others)
    return nearest


def _sentences(tokens: Sequence[str]) -> list[slice]:
    """The places of each sentence's tokens."""
    sentences: list[slice] = []
    begin, ends = 0, False
    for stop, token in enumerate(tokens, 1):
        ends = not token.strip(ENDS) or (ends and token in CLOSING)
        is_last = stop == len(tokens)
        if is_last or (ends and stop - begin >= MIN_TOKENS and tokens[stop] not in CLOSING):
            sentences.append(slice(begin, stop))
            begin = stop
    return sentences


def words_of(tokens: Sequence[str]) -> list[str]:
    """The tokens that begin with a letter or a digit, in lower case."""
    return [token.lower() for token in tokens if token[0].isalnum()]
