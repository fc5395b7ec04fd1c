"""Rules that bring spaCy's English tokenizer nearer to the tokens of UD English EWT.

A stored pipeline has them in its bytes. Each token remains a part of the text, and none holds white space.
"""

from itertools import groupby
from typing import Any

from spacy.attrs import ORTH
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.util import compile_infix_regex, compile_prefix_regex, compile_suffix_regex, registry

from heedful.text.plain import LETTER

RUNS = tuple(
    rf"(?<!{mark}){run}"  # only from the run's first mark: a search from each mark would be quadratic
    for mark, run in (
        *((r"[!?]", r"[!?]{2,}"), (r"\.", r"\.+[!?]+"), (r"\*", r"\*{2,}"), ("=", "={2,}")),
        *(("_", "_{2,}"), ("~", "~{2,}"), ("#", "#{3,}"), (r"\$", r"\${2,}")),
        *(("<", "<{2,}"), (">", ">{2,}")),
    )
)
"""Runs of punctuation, which are one token."""
BREAKS = (r"<[bB][rR]/>", r"<[bB][rR]>", r"<[bB][rR](?=$|/)", r"/>")
"""Line breaks of mark-up. `<br />` holds a blank, so that it is two tokens, `<br` and `/>`."""
CLITICS = (
    rf"(?<={LETTER})[nN]['’][tT]",
    rf"(?<={LETTER})['’](?:ll|LL|re|RE|ve|VE|[mMdD])",
    rf"(?<={LETTER})`[sS]",
)
UNITS = r"(?<=\d)(?:[aApP]\.[mM]\.|[aApP][mM]|[kK]|[mMbB][nN]|hrs?|MM)"
PREFIXES = (*RUNS, *BREAKS, rf"-+(?={LETTER})", r"-(?=\d)", r"\d+(?=\)\w)")
SUFFIXES = (*RUNS, *BREAKS, r"(?<=\w)-+", *CLITICS, UNITS)
INFIXES = (
    *(*RUNS, *BREAKS),
    *(r"(?<=\w)[()\[\]{}](?=\w)", r"[\"”“]"),
    *(rf"(?<={LETTER})[-#:](?=\d)", rf"(?<=\.)-(?={LETTER})", r"(?<=[apAP][mM])-(?=\d)"),
    *(r"(?<=\w);(?=\w)", r"(?<=\d)'(?=\d)"),
)

NUMBERS = r"(?<=[0-9])[+\-\*^](?=[0-9-])"
"""spaCy's rule that splits all numbers at these signs; RANGES does not split telephone numbers and dates."""
RANGES = (
    r"(?<=[0-9])[+*^](?=[0-9-])",
    r"(?<=\d)(?<!-\d)(?<!-\d\d)(?<!-\d{3})(?<!-\d{4})"
    r"(?:(?<!\b\d{3})-(?=\d+\b(?!-))|-(?!\d{4}\b)(?=\d+\b(?!-)))",
)

HYPHENS = r"(?:-|–|—|--|---|——|~)"
"""spaCy's hyphens between letters."""
BOUND_PREFIXES = (
    *("anti", "arch", "co", "counter", "e", "ex", "inter", "intra", "mid"),
    *("mini", "multi", "neo", "non", "over", "post", "pre", "pro", "proto"),
    *("pseudo", "psycho", "quasi", "re", "semi", "socio", "sub", "super", "trans"),
    *("ultra", "un"),
)
"""Prefixes that a hyphen does not separate from the next word."""

CONTRACTIONS = ("and / or", "a lot", "du n no", "gim me", "lem me", "out ta", "wan na")
ABBREVIATIONS = "approx. attn. blvd. dept. esp. ft. lt. reps. sgt. sr. tel."
DAYS = "Mon. Tue. Tues. Wed. Thu. Thur. Thurs. Fri. Sat."


def rules(nlp: Language) -> Tokenizer:
    """spaCy's tokenizer for the language of `nlp`, for English with the rules of this module.

    Raises ValueError for other rules than those of spaCy 3.8.
    """
    tokenizer: Tokenizer = registry.tokenizers.get("spacy.Tokenizer.v1")()(nlp)
    if nlp.lang != "en":
        return tokenizer
    defaults: Any = nlp.Defaults
    tokenizer.prefix_search = compile_prefix_regex([*PREFIXES, *defaults.prefixes]).search
    tokenizer.suffix_search = compile_suffix_regex([*SUFFIXES, *defaults.suffixes]).search
    infixes = [*INFIXES, *_infixes(defaults.infixes)]
    tokenizer.infix_finditer = compile_infix_regex(infixes).finditer
    for contraction in CONTRACTIONS:
        for case in (str.lower, str.upper, str.capitalize):
            words = case(contraction).split()
            tokenizer.add_special_case("".join(words), [{ORTH: word} for word in words])
    for word in f"{ABBREVIATIONS} {ABBREVIATIONS.title()} {DAYS}".split():
        tokenizer.add_special_case(word, [{ORTH: word}])
    return tokenizer


def _infixes(rules: list[str]) -> list[str]:
    """spaCy's infix rules, without those that split too much."""
    if NUMBERS not in rules or sum(HYPHENS in rule for rule in rules) != 1:
        raise ValueError("spaCy's infix rules are not those of spaCy 3.8")
    alternatives = (  # by length: a look-behind has one
        "|".join(f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in words)
        for _, words in groupby(sorted(BOUND_PREFIXES, key=len), len)
    )
    hyphens = "".join(rf"(?<!\b(?:{words}))" for words in alternatives) + HYPHENS
    return [*RANGES, *(rule.replace(HYPHENS, hyphens) for rule in rules if rule != NUMBERS)]
