"""Text -> tokens, offsets and trees: for any Unicode, of any length, and nothing is kept."""

import html
import random
import re
import string
from typing import Any

import numpy as np
import pytest
import spacy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from spacy.attrs import ORTH
from spacy.tokenizer import Tokenizer

from heedful.text import invisible, plain
from heedful.text.parse import Parse, Parser
from heedful.text.structure import check_heads
from heedful.text.tokenize import MAX_CHUNK
from tests.builders import BuiltParser

EVERYTHING = 100_000
SPACES = [" ", "\n", "\t", "\u3000", "\u2028", "\x85", "\x1c"]
INVISIBLE = ["\u200b", "\ufeff", "\x00", "\u0301", "\u200d"]  # characters, but no white space
ENGLISH = ["Two kids", "wash their hands.", "don't", "U.S.", "e-mail", ":-)", "10km", "'s", "..."]
# Letters alone, read by special cases.
SPECIAL = ["dont", "Gonna", "km", "IInd", "pm", "Cannot", "im", "Ima"]
FOREIGN = ["naïve", "İstanbul", "你好", "مرحبا", "\U0001f468\u200d\U0001f469\u200d\U0001f467"]
pieces = st.text() | st.sampled_from(
    [*SPACES, *INVISIBLE, *ENGLISH, *SPECIAL, *FOREIGN, "http://a.b/c?d=1"]
)
texts = st.lists(pieces, max_size=12).map("".join)


def read(parser: Parser, text: str, max_tokens: int = EVERYTHING, *, tree: bool = True) -> Parse:
    (parse,) = parser.parse([text], max_tokens, tree)
    return parse


def tokens_of(parser: Parser, text: str) -> list[str]:
    return list(read(parser, text, tree=False).tokens)


def spans(parse: Parse) -> tuple[str, ...]:
    return tuple(parse.text[a:b] for a, b in zip(parse.starts, parse.stops, strict=True))


@settings(max_examples=300)
@given(texts)
@example("")
@example("Tom &amp; Ann&#39;s &lt;so&gt;&hellip;  so")
@example(" \n\t")
@example("  leading and trailing  ")
@example("a\n\nb\r\nc")
@example("<H1>a<br>b</H1>")
def test_offsets_are_the_tokens_of_any_text_and_heads_a_forest(parser: Parser, text: str) -> None:
    parse = read(parser, text)
    assert parse.text == text
    assert spans(parse) == parse.tokens
    assert not any(token.isspace() for token in parse.tokens)
    # in order, without overlap, and with nothing but white space, what is invisible, marks and tags between them
    tags = [tag[1] for tag in plain.TAG.finditer(html.unescape(text))]
    if not any(name is None or name.lower() in plain.ELEMENTS for name in tags):
        parts = (parse.tokens, text.split())
        hidden = f"{invisible.INVISIBLE.pattern}|[#*_`]"
        seen, visible = (re.sub(hidden, "", "".join(part)) for part in parts)
        assert seen == visible
    assert all(start >= stop for start, stop in zip(parse.starts[1:], parse.stops, strict=False))
    assert not parse.cut
    assert len(parse.heads) == len(parse.deps) == len(parse)
    check_heads(parse.heads)
    flat = read(parser, text, tree=False)
    assert (flat.tokens, flat.deps) == (parse.tokens, ())
    assert flat.heads.tolist() == list(range(len(parse)))


@settings(max_examples=150)
@given(texts)
@example("don't DON'T can't. :-) U.S. e-mail, 10km 'tis http://a.b/c?d=1")
def test_a_text_is_tokenized_as_spacy_does_it_whole(parser: Parser, text: str) -> None:
    """Its runs are tokenized one by one, and cached runs not again."""
    blank = " ".join(plain.plain(text.replace("&", "+"))[0].split())
    assert tokens_of(parser, blank) == [token.text for token in parser.tokenizer.rules(blank)]


def test_spacys_parser_gives_its_own_trees(pipeline: BuiltParser, parser: Parser) -> None:
    """It gets the attributes that spaCy's tokenizer gives; of a text that is cut, those of the tokens that are left."""
    text = "Two kids can't wash their hands: they're cold. I'm not, U.S. rules!!"
    nlp = spacy.load(pipeline.folder)
    for shown, count in ((text, EVERYTHING), ("Two kids ca", 3)):
        doc, parse = nlp(shown), read(parser, text, count)
        assert parse.tokens == tuple(token.text for token in doc)
        assert parse.heads.tolist() == [token.head.i for token in doc]
        assert parse.deps == tuple(token.dep_ for token in doc)


def test_the_tokenizer_of_another_pipeline_splits_words(pipeline: BuiltParser) -> None:
    nlp = spacy.load(pipeline.folder)
    tokenizer: Any = nlp.tokenizer
    tokenizer.suffix_search = re.compile(r"(ing|y\.|[.!])$").search
    tokenizer.add_special_case("cannot", [{ORTH: "can"}, {ORTH: "not"}])
    other = Parser(nlp, "en_own", pipeline.fingerprint)
    expected = ["go", "ing", "can", "not", "da", "y.", "half", "!"]
    for _ in range(2):
        assert tokens_of(other, "going cannot day. half!") == expected
    nlp.tokenizer = Tokenizer(nlp.vocab, token_match=re.compile(r"\S+").match)  # has no rules
    other = Parser(nlp, "en_own", pipeline.fingerprint)
    assert tokens_of(other, "two kids, don't") == ["two", "kids,", "don't"]


@settings(max_examples=150)
@given(texts, st.integers(1, 12), st.booleans())
@example("two words  \n ", 2, False)
def test_a_cut_parse_is_the_beginning_of_the_whole(
    parser: Parser, text: str, max_tokens: int, tree: bool
) -> None:
    full, cut = read(parser, text), read(parser, text, max_tokens, tree=tree)
    assert cut.tokens == full.tokens[:max_tokens]
    assert cut.starts == full.starts[:max_tokens]
    assert cut.cut == (len(full) > max_tokens)  # white space after the last token is no loss
    check_heads(cut.heads)


def words(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(string.ascii_lowercase, k=7)) for _ in range(count)]


@pytest.mark.parametrize("tree", [True, False])
def test_a_text_is_parsed_the_same_alone_and_among_others_in_their_order(
    parser: Parser, tree: bool
) -> None:
    texts = [" ".join(words(seed, seed)) for seed in range(30)]  # the first is empty
    for text, parse in zip(texts, parser.parse(texts, 20, tree), strict=True):
        assert (parse.text, bool(parse.deps)) == (text, tree and text != "")
        (single,) = parser.parse([text], 20, tree)
        assert (single.heads.tolist(), single.deps) == (parse.heads.tolist(), parse.deps)
    assert parser.parse([], 20, tree) == []


@pytest.mark.parametrize("tree", [True, False])
@pytest.mark.parametrize("ours", [True, False])
def test_only_so_many_words_and_chunks_are_kept(
    pipeline: BuiltParser, tree: bool, ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By our tokenizer without a parser, and by that of a pipeline of spaCy's."""
    monkeypatch.setattr("heedful.text.tokenize.KEPT_WORDS", 30)
    monkeypatch.setattr("heedful.text.tokenize.CACHED_CHUNKS", 50)
    parser = Parser.load(None if ours else pipeline.folder)
    vocab, tokenizer = parser.nlp.vocab, parser.tokenizer
    # The first text that goes over the bound is still kept, whole.
    parser.parse([" ".join(words(40, seed=9))], 256, tree)
    strings, lexemes = len(vocab.strings), list(vocab)  # len(vocab) never goes down
    for seed in range(5):
        text = " ".join(words(40, seed))
        parses = parser.parse([text] * 10, 256, tree)
        assert [parse.tokens for parse in parses] == [tuple(text.split())] * 10
        assert max(len(tokenizer._recent), len(tokenizer._older)) <= 50
    assert len(vocab.strings) == strings
    assert len(list(vocab)) == len(lexemes)


def test_a_text_that_cannot_be_read_does_not_harm_the_next(parser: Parser) -> None:
    before = read(parser, "Two kids wash their hands.")
    for _ in range(3):
        with pytest.raises(UnicodeEncodeError):
            read(parser, "half a character: \ud800")
    after = read(parser, "Two kids wash their hands.")
    assert after.tokens == before.tokens
    np.testing.assert_array_equal(after.heads, before.heads)


X = "x" * MAX_CHUNK
LONG = {
    "a run of the limit": ("see " + X, EVERYTHING, ("see", X), False),
    "a longer run": ("see " + X + "x and more", EVERYTHING, ("see", X), True),
    "a megabyte": ("see " + "x" * 1_000_000 + " and more", EVERYTHING, ("see", X), True),
    "a run behind the last token": ("only two words " + "x" * 10_000, 2, ("only", "two"), True),
    "two megabytes of runs of the limit": ((X + " ") * 4_000, 3, (X,) * 3, True),
    "white space": (" \n" * 50_000, 5, (), False),
    "two words far apart": ("first" + " " * 2_000_000 + "last", 2, ("first", "last"), False),
}


@pytest.mark.parametrize("name", LONG)
def test_long_texts_are_read_as_far_as_tokens_fit(parser: Parser, name: str) -> None:
    text, limit, tokens, cut = LONG[name]
    parse = read(parser, text, limit)
    assert (parse.tokens, parse.cut) == (tokens, cut)
    assert spans(parse) == tokens
