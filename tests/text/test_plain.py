"""Typographic characters are read as the plain ones that the models were trained on, invisible ones not at all."""

import unicodedata
from functools import partial

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from heedful.text.invisible import INVISIBLE, without_invisible
from heedful.text.parse import Parser
from heedful.text.plain import MAX_PLAIN, plain, plain_word
from tests.text.test_parse import read, spans

APOSTROPHES = "’‘‛ʼ′＇`´\x92"
NFKC = partial(unicodedata.normalize, "NFKC")
EMOJI = regex.compile(r"\p{RI}\p{RI}|\p{ExtPict}\p{EMod}")
MARKS = st.text(st.one_of(st.characters(), st.sampled_from(APOSTROPHES + "“”„–—\u00ad ﬁ")))


@given(MARKS.filter(lambda text: not EMOJI.search(text)))
@example("it isn`t ‘so’")
@example("IT DOESNT MATTER <b>")
def test_plain_text_has_each_character_in_its_place(text: str) -> None:
    text = without_invisible(text)
    normalised, places = plain(text)
    assert len(normalised) == len(text)
    assert not places.at
    assert all(
        a == b or b in "'\"- ,." or NFKC(a).lower() == b.lower()
        for a, b in zip(text, normalised, strict=True)
    )


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="#&*<N_`")))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert plain(text)[0] == text


READ_AS = """
I DIDNT, I WONT => I Didnt, I Wont
DON'T WANT ANTS => DON'T WANT ANTS
dont => dont
It Did'nt, he WO'NT => It Didn't, he WON'T
rock'n'roll => rock'n'roll
**Note:** isn't `it` _so_ => Note: isn't it so
# Top #news C# #2 => Top news C# #2
user_id o_O @a_b 2*3*4 5* => user id o_O @a_b 2*3*4 5*
good，not bad！ＯＫ => good,not bad!OK
<p>A film</p> => A film
<BR>so<i>it</i>is => so it is
see <a href='x'>here</a> => see here
a <b and c> d => a <b and c> d
if a<b: x>y => if a<b: x>y
I <3 you => I <3 you
<script>is</script> <sup>x</sup> => is x
<p hidden>so</p> => so
<p data-x1="a">so</p> <p data-x hidden class=y open>is</p> => so is
<use xlink:href="#a"> => <use xlink:href="#a">
<details open>so => so
<p hiddenly> => <p hiddenly>
<!-- x -->so => so
so <!-- <b>x</b> - y -- z --> it => so it
so <!---->it<!-- > --> => so it
<!-- x => <!-- x
<!-- x <!-- y --> z => <!-- x z
a <-- b --> c => a <-- b --> c
<3 x<y>z <y> </y> => <3 x<y>z <y> </y>
x <i or j> y => x <i or j> y
<custom>so</custom> <h7> => <custom>so</custom> <h7>
\u200e(so)\u2060, \u2068isn't\u2069\u00ad! => (so), isn't!
co\u00adoperate \u0915\u094d\u200d\u0937 => cooperate \u0915\u094d\u0937
so\u2800it\u2800 is => so it is
\x1bcGood \x1bMore => Good More
good\x1b[31 => good
good\x1b[ => good
\x1bcat \x1bMore <i\x1b>so => cat More so
\x9bmore, \x9b31 more => more, 31 more
\x1b7so \x1b8it => so it
\x80\x9cso\x1f it\x80\x9d is\x9c => so it is
"""


@pytest.mark.parametrize("case", READ_AS.strip().splitlines())
def test_texts_as_the_tokenizer_takes_them(case: str) -> None:
    text, words = case.split(" => ")
    assert plain(text)[0].split() == words.split()


@given(MARKS.filter(lambda word: word.split() == [word]))
@example("<b>")
def test_a_word_stays_one_word(word: str) -> None:
    found = plain_word(word)
    assert found.split() == [found]


PLAIN_WORDS = """
nt n't | NT N'T | ant ant | N’T N'T | ’s 's | 'nt n't | ’NT N'T | ´s 's | `LL 'LL | `so `so | ， ,
“ " | ” " | … ... | — -- | 3–5 3-5 | co‑op co-op | ﬁne fine | Ｆｕｌｌ Full | co\u00adoperate cooperate
\ufeffHello Hello | zero\u200bwidth zerowidth | cafe\u0301 café | n&#39;t n't | AT&amp;T AT&T | &hellip; ...
&nosuch; &nosuch; | R&D; R&D; | \u2068I\u2069 I | no\u200ct not | good\ufe0f good | \u200b \u200b | ´ ´ | ` `
naïve naïve | 世界 世界
"""


def test_plain_words() -> None:
    for case in PLAIN_WORDS.strip().replace("\n", " | ").split(" | "):
        word, expected = case.split(" ")
        assert plain_word(word) == expected, ascii(word)
    assert {plain_word(f"n{mark}t") for mark in APOSTROPHES} == {"n't"}


QUOTED = "The “best” film isn't   one we’d see; they can't."


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *((QUOTED.replace("'", mark), QUOTED) for mark in APOSTROPHES),
        ("The &quot;best&quot;  isn&#x27;t AT&amp;T&rsquo;s", "The \"best\"  isn't AT&T's"),
        ("So&hellip; &nbsp; &lt;Yes&gt; R&D; &nosuch; &amp;", "So…   <Yes> R&D; &nosuch; &"),
        ("We did'nt like it", "We didn't like it"),
        ("It´s so, they`ll see", "It's so, they'll see"),
        ("Good？No！It isn＇t。", "Good?No!It isn't."),
    ],
)
def test_tokens_are_the_users_and_the_tree_is_that_of_the_plain_text(
    parser: Parser, typed: str, meant: str
) -> None:
    parse, expected = (read(parser, each) for each in (typed, meant))
    assert parse.tokens == spans(parse)
    assert list(map(plain_word, parse.tokens)) == list(map(plain_word, expected.tokens))
    assert parse.heads.tolist() == expected.heads.tolist()
    assert parse.deps == expected.deps
    if len(typed) == len(meant):
        assert (parse.starts, parse.stops) == (expected.starts, expected.stops)


GOOD = "It isn't good, <i>he</i> said: “3 &amp; 4”! 👍🏽"
CONTROLS = [chr(code) for code in (*range(1, 9), *range(14, 32), *range(127, 160)) if code != 0x85]
SEQUENCES = (
    "\x1b[1;31m \x1b[0m \x1b[38;2;1;2;3m \x1b[2K \x9b31m \x1b]0;title\x07 \x1b(B \x1b7 \x1b8 "
    "\x1b[?1h\x1b= \x1b%G \x1b#8 \x1b)0 \x1bP0;1q#0\x1b\\ \x9b0m \x9b?25l \x9b2K \x9d0;title\x07 "
    "\x90q\x1b\\ \x1b]8;;https://example.org\x1b\\ \u200b\x1b[31m\ufe0f &#8203; &shy; &zwj;\u200d"
)
UNSEEN = [
    *(c for c in CONTROLS if c not in "\x91\x92\x93\x94"),  # which stand for quotation marks
    *regex.findall(r"[\p{DI}\ufff9-\ufffb]", "".join(map(chr, range(0x110000)))),
    *SEQUENCES.split(" "),
]


def test_every_code_point_that_unicode_calls_ignorable_is_invisible() -> None:
    assert len(UNSEEN) > 4200
    assert [text for text in UNSEEN if "&" not in text and not INVISIBLE.fullmatch(text)] == []
    seen = regex.findall(r"[^\p{DI}\p{Cc}\ufff9-\ufffb]", "".join(map(chr, range(0x110000))))
    assert INVISIBLE.findall("".join(seen)) == []


@pytest.mark.parametrize("place", [0, 3, 5, 7, 8, 16, 17, GOOD.index("3"), len(GOOD)])
def test_what_is_invisible_is_not_read(place: int) -> None:
    expected = plain(GOOD)[0]
    for unseen in UNSEEN:
        assert plain(GOOD[:place] + unseen + GOOD[place:])[0] == expected, ascii(unseen)


@given(st.lists(st.tuples(st.integers(0, 27), st.sampled_from(UNSEEN)), min_size=1, max_size=6))
@example([(9, "\U000e0041")])
@example([(0, "\ufeff"), (7, "\u200b"), (27, "\u3164")])
def test_the_tree_is_the_same_with_invisible_characters_and_offsets_are_exact(
    parser: Parser, inserted: list[tuple[int, str]]
) -> None:
    text = "It isn't good, but they won."
    typed = text
    for place, unseen in sorted(inserted, reverse=True):
        typed = typed[:place] + unseen + typed[place:]
    parse, expected = (read(parser, each) for each in (typed, text))
    assert parse.heads.tolist() == expected.heads.tolist()
    assert parse.deps == expected.deps
    assert list(map(plain_word, parse.tokens)) == list(expected.tokens)
    assert parse.tokens == spans(parse)
    assert all(plain(token[0])[0] and plain(token[-1])[0] for token in parse.tokens), "at no end"


@pytest.mark.parametrize("unseen", ["\u200b", "\U000e0020", "\x1b[0m", "\x07"])
def test_before_a_text_any_number_is_passed_over(parser: Parser, unseen: str) -> None:
    assert read(parser, unseen * 2 * MAX_PLAIN).tokens == ()
    parse = read(parser, f"{unseen * 2 * MAX_PLAIN}It isn't {unseen} good.")
    assert parse.tokens == ("It", "is", "n't", "good", ".")
    assert parse.starts[0] == len(unseen) * 2 * MAX_PLAIN


@pytest.mark.parametrize(
    "emoji", ["👍", "👍🏽", "❤️", "👨‍👩‍👧", "👩🏽‍💻", "🇩🇪", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏳️‍🌈", "☎︎"]
)
def test_an_emoji_is_one_token(parser: Parser, emoji: str) -> None:
    parse = read(parser, f"So {emoji}, it {emoji} is.")
    assert parse.tokens == spans(parse) == ("So", emoji, ",", "it", emoji, "is", ".")


@pytest.mark.parametrize("beginning", ["<b>", "&amp;", "’", "a`"])
def test_of_a_long_text_the_end_stays_as_it_is(beginning: str) -> None:
    text = beginning * MAX_PLAIN
    assert plain(text)[0].endswith(text[MAX_PLAIN + len(beginning) :])
