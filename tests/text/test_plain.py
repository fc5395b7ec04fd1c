"""Typographic characters are read as the plain ones that the models were trained on."""

import unicodedata
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heedful.text.composition import SIGNATURE, features
from heedful.text.parse import Parse, ParseJob, Parser
from heedful.text.plain import READ, plain, plain_word, unescape
from heedful.text.vocab import UNKNOWN, Vocab

APOSTROPHES = "’‘‛ʼ′＇`´\x92"
NFKC = partial(unicodedata.normalize, "NFKC")
MARKS = st.text(st.one_of(st.characters(), st.sampled_from(APOSTROPHES + "“”„–—\u00ad ﬁ")))


@given(MARKS)
@example("it isn`t ‘so’")
@example("IT DOESNT MATTER <b>")
def test_plain_text_has_each_character_in_its_place(text: str) -> None:
    found = plain(text)
    assert len(found) == len(text)
    assert all(
        a == b or b in "'\"- ,." or NFKC(a).lower() == b.lower()
        for a, b in zip(text, found, strict=True)
    )


@given(st.text(st.characters(max_codepoint=127, exclude_characters="`<N")))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *(
            ("I DIDNT, I WONT", "I Didnt, I Wont"),
            ("DON'T WANT ANTS", "DON'T WANT ANTS"),
            ("dont", "dont"),
            ("It Did'nt, he WO'NT", "It Didn't, he WON'T"),
            ("rock'n'roll", "rock'n'roll"),
            ("good，not bad！ＯＫ", "good,not bad!OK"),
        ),
        *(
            ("<p>A film</p>", "A film"),
            ("so<br /><br />Not", "so Not"),
            ("<BR>so<i>it</i>is", "so it is"),
        ),
        *(("see <a href='x'>here</a>", "see here"), ('<div class="x y">so</div>', "so")),
        *(
            ("a <b and c> d", "a <b and c> d"),
            ("if a<b: x>y", "if a<b: x>y"),
            ("I <3 you", "I <3 you"),
        ),
        *(
            ("<tbody>So</tbody> <article>it</article>", "So it"),
            ("<script>is</script> <sup>x</sup>", "is x"),
            ("<h6>A</h6> <center>B</center>", "A B"),
        ),
        *(
            ("<p hidden>so</p>", "so"),
            ("<input disabled required/>so", "so"),
            ('<p data-x1="a">so</p> <p data-x hidden class=y open>is</p>', "so is"),
            ('<use xlink:href="#a">', '<use xlink:href="#a">'),
            ('<a xml:lang="en">so</a>', "so"),
            ("<details open>so", "so"),
            ("<p hidden", "<p hidden"),
            ("<p hiddenly>", "<p hiddenly>"),
        ),
        *(
            ("<!-- x -->so", "so"),
            ("so <!-- <b>x</b> - y\n-- z --> it", "so it"),
            ("so <!---->it<!-- > -->", "so it"),
            ("<!-- x", "<!-- x"),
            ("<!-- x <!-- y --> z", "<!-- x z"),
            ("a <- b -> c", "a <- b -> c"),
            ("a <-- b --> c", "a <-- b --> c"),
        ),
        *(
            ("<3 x<y>z <y> </y>", "<3 x<y>z <y> </y>"),
            ("a < b and c > d", "a < b and c > d"),
            ("a <b and c = d", "a <b and c = d"),
            ("x <i or j> y", "x <i or j> y"),
            ("<custom>so</custom> <h7>", "<custom>so</custom> <h7>"),
        ),
        *(("List<String>", "List<String>"), ("a <= b", "a <= b"), ("<p", "<p")),
        *(
            ("It isn't\u200b so.\ufeff", "It isn't so."),
            ("\u200e(so)\u2060, \u2068isn't\u2069\u00ad!", "(so) , isn't !"),
            ("\U0001f468\u200d\U0001f469\ufe0f", "\U0001f468 \U0001f469"),
            (
                "co\u00adoperate \u0915\u094d\u200d\u0937",
                "co\u00adoperate \u0915\u094d\u200d\u0937",
            ),
        ),
    ],
)
def test_texts_as_the_tokenizer_takes_them(text: str, words: str) -> None:
    found = plain(text)
    assert found.split() == words.split()
    assert len(found) == len(text)


@given(MARKS.filter(lambda word: word.split() == [word]))
@example("<b>")
def test_a_word_stays_one_word(word: str) -> None:
    found = plain_word(word)
    assert found.split() == [found]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *((f"n{mark}t", "n't") for mark in APOSTROPHES),
        *(("nt", "n't"), ("NT", "N'T"), ("ant", "ant"), ("N’T", "N'T"), ("’s", "'s")),
        *(
            ("'nt", "n't"),
            ("’NT", "N'T"),
            ("´s", "'s"),
            ("`LL", "'LL"),
            ("`so", "`so"),
            ("，", ","),
        ),
        *(("“", '"'), ("”", '"'), ("…", "..."), ("—", "--"), ("3–5", "3-5"), ("co‑op", "co-op")),
        *(("ﬁne", "fine"), ("Ｆｕｌｌ", "Full"), ("co\u00adoperate", "cooperate")),
        *(("\ufeffHello", "Hello"), ("zero\u200bwidth", "zerowidth"), ("cafe\u0301", "café")),
        *(
            ("n&#39;t", "n't"),
            ("AT&amp;T", "AT&T"),
            ("&hellip;", "..."),
            ("&nosuch;", "&nosuch;"),
            ("R&D;", "R&D;"),
        ),
        *(("\u2068I\u2069", "I"), ("no\u200ct", "not"), ("good\ufe0f", "good")),
        *(("\u200b", "\u200b"), ("´", "´"), ("`", "`"), ("naïve", "naïve"), ("世界", "世界")),
    ],
)
def test_plain_words(word: str, expected: str) -> None:
    assert plain_word(word) == expected


def test_a_vocabulary_finds_the_plain_spelling_first() -> None:
    vocab = Vocab(["n't", "fine", "’s", "'s", "—", "nt"])
    tokens = ["n’t", "nt", "ﬁne", "’s", "—", "n`t", "it’s"]
    assert vocab.ids(tokens).tolist() == [2, 2, 3, 5, 6, 2, UNKNOWN]
    assert "N’T" in vocab
    assert "it’s" not in vocab


def test_a_stretched_word_is_found_short() -> None:
    vocab = Vocab(["so", "good", "aaa", "fol", "follow"])
    tokens = ["sooooo", "GOOOOD", "aaa", "folllow", "aaaa", "1000", "..."]
    assert vocab.ids(tokens).tolist() == [2, 3, 4, 6, *[UNKNOWN] * 3]


SYMBOLS = ("😀", "😡", "→", "★★★", "@anna", "@ben", "https://a.org/b", "www.a.org", "ben@a.org")


def test_a_symbol_is_composed_like_a_full_stop_and_differs_from_others() -> None:
    found = np.array([features(symbol, 4096) for symbol in SYMBOLS])
    stop = np.array(features(".", 4096))
    assert (found[:, :-SIGNATURE] == stop[:-SIGNATURE]).all()
    assert len({tuple(row) for row in found.tolist()}) == len(SYMBOLS)


def test_an_unlisted_word_is_composed_from_its_plain_spelling() -> None:
    vocab = Vocab([], composed=4096)
    curly, straight = (
        vocab.sentence([word], Vocab([]).ids([])).features for word in ("o’er", "o'er")
    )
    assert curly is not None
    assert straight is not None
    assert curly.tolist() == straight.tolist()


@pytest.mark.parametrize("mark", APOSTROPHES)
def test_tokens_are_the_users_and_the_tree_is_that_of_the_plain_text(
    parser: Parser, mark: str
) -> None:
    text = "The “best” film isn't   one we’d see; they can't."
    typed = text.replace("'", mark)
    found, expected = (_parse(parser, each) for each in (typed, text))
    assert found.tokens == tuple(
        typed[start:stop] for start, stop in zip(found.starts, found.stops, strict=True)
    )
    assert f"n{mark}t" in found.tokens
    assert (found.starts, found.stops) == (expected.starts, expected.stops)
    assert found.heads.tolist() == expected.heads.tolist()
    assert found.deps == expected.deps


def test_entities_are_read_as_their_characters_and_stay_in_the_tokens(parser: Parser) -> None:
    typed = "The &quot;best&quot;  film isn&#x27;t AT&amp;T&rsquo;s&hellip; &nbsp; &lt;Yes&gt; R&D; &nosuch; &amp;"
    text = "The \"best\"  film isn't AT&T's…   <Yes> R&D; &nosuch; &"
    found, expected = (_parse(parser, each) for each in (typed, text))
    assert found.tokens == tuple(
        typed[start:stop] for start, stop in zip(found.starts, found.stops, strict=True)
    )
    assert list(map(plain_word, found.tokens)) == list(map(plain_word, expected.tokens))
    assert found.heads.tolist() == expected.heads.tolist()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("We did'nt like it", "We didn't like it"),
        ("It´s so, they`ll see", "It's so, they'll see"),
        ("Good？No！It isn＇t。", "Good?No!It isn't."),
    ],
)
def test_misplaced_and_foreign_marks_are_read_as_those_that_are_meant(
    parser: Parser, typed: str, meant: str
) -> None:
    found, expected = (_parse(parser, each) for each in (typed, meant))
    assert list(map(plain_word, found.tokens)) == list(map(plain_word, expected.tokens))
    assert found.starts == expected.starts
    assert found.heads.tolist() == expected.heads.tolist()


@pytest.mark.parametrize(
    "typed",
    [
        "It isn't\u200b good.",
        "\u200eIt isn't good.\u200e",
        "It \u2068isn't\u2069 good\u00ad.",
        "It isn't good.\ufeff",
        "It isn't &lt;b&gt;good&lt;/b&gt;.&#8203;",
    ],
)
def test_invisible_characters_and_escaped_tags_leave_the_tokens_as_they_are(
    parser: Parser, typed: str
) -> None:
    found, expected = (_parse(parser, each) for each in (typed, "It isn't good."))
    assert found.tokens == expected.tokens
    assert found.heads.tolist() == expected.heads.tolist()


@pytest.mark.parametrize("beginning", ["<b>", "&amp;", "’", "a`"])
def test_of_a_long_text_the_end_stays_as_it_is(beginning: str) -> None:
    text = beginning * READ
    assert plain(text)[READ:] == text[READ:]
    assert unescape(text)[0].endswith(text[READ + len(beginning) :])


def _parse(parser: Parser, text: str) -> Parse:
    (found,) = parser.parse([ParseJob(text, 64, tree=True)])
    return found
