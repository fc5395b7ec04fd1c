"""Texts that nobody should send, through every route that reads a text."""

import json
import sys
import unicodedata

import httpx
import orjson
import pytest

from tests.app.bodies import AVERAGED, bodies, path_of
from tests.app.posting import JSON, Client, error_of

pytestmark = pytest.mark.anyio
ROUTES = tuple(bodies(""))
EACH = {unicodedata.category(chr(i)): chr(i) for i in range(1, sys.maxunicode + 1)}
"""The last character of each general category of Unicode."""
TEXTS = {
    "surrogates the wrong way round": "\udc00\ud800",
    "NUL": "two\0kids",
    "blank": " \t\r\n\v\f\u00a0\u2003\u3000\u2028\u2029",
    "a megabyte of one letter": "a" * 1_000_000,
    "a megabyte of one emoji": "🐕" * 250_000,
    "a megabyte of blanks and a word": " " * 1_000_000 + "kids",
    "a megabyte of commas": "," * 1_000_000,
    "10,000 sentences": "Two kids wash their hands. " * 10_000,
    "zalgo": "k\u0300" + "".join(map(chr, range(0x300, 0x370))) * 20 + "ids",
    "right to left": "שני ילדים \u202eשוטפים ידיים\u202c والكلب يغسل",
    "bidi without an end": "\u2066\u2067\u202e\u202dkids",
    "emoji sequences": "👨‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 🇺🇳 1️⃣ " * 3,
    "joiners alone": "\u200d\u200d\ufe0f\u200b\ufeff",
    "tags, fillers and selectors alone": "\U000e0001\U000e0041\u3164\uffa0\u115f\u17b4\U000e0100\u180b",
    "colours alone": "\x1b[1;31m \x1b[0m\x1b]0;title\x07",
    "half a megabyte of tags": "\U000e0041" * 500_000,
    "HTML": "<script>alert('kids')</script><!-- & &amp; --> <img src=x onerror=y>",
    "numbers": "1234567890 3.14 -1e999 0x1F ١٢٣ Ⅷ ½ 10^100",
    "NaN and infinity": "NaN nan Infinity -inf",
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f",
    "each category": " ".join(one for category, one in EACH.items() if category != "Cs"),
    "non-characters": "\ufffe\uffff\U0010ffff\ufdd0",
    "quotes and backslashes": '"\'`\\\\\\"{}[]%s%n{0}${x}\\u0000',
    "a path": "../../../etc/passwd",
    "a URL": "http://127.0.0.1:1/etc/passwd",
    "a file's URL": "file:///etc/passwd",
}
REFUSED = {name for name in TEXTS if "surrogate" in name or "alone" in name}
REFUSED |= {"NUL", "blank", "half a megabyte of tags", "control characters"}
LONG = {"a megabyte of one letter", "a megabyte of one emoji", "a megabyte of commas"}
LONG |= {"10,000 sentences"}


def refused(answer: httpx.Response, status: int) -> None:
    assert answer.status_code == status, answer.text[:200]
    error_of(answer)
    assert len(answer.content) < 2000  # it does not send the text back


def answered(answer: httpx.Response) -> None:
    assert answer.status_code == 200, answer.text[:200]
    orjson.loads(answer.content)  # refuses NaN, infinity and what is no UTF-8


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("name", TEXTS)
async def test_a_hostile_text(client: Client, path: str, name: str) -> None:
    for truncate in (False, True):
        body = bodies(TEXTS[name], truncate=truncate)[path]
        answer = await client.post(path_of(path), content=json.dumps(body).encode(), headers=JSON)
        if name in REFUSED:
            refused(answer, 422)
        elif truncate or path in AVERAGED:
            answered(answer)
        elif name in LONG or answer.status_code != 200:
            refused(answer, 422)
            assert error_of(answer)["code"] == "input_too_long"
        else:
            answered(answer)
