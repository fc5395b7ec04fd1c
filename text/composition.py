"""The features of unlisted words, which the vocabulary does not hold: hashed character n-grams.

Bojanowski et al. 2017 (fastText) sum vectors of a word's n-grams. Here a word has three kinds of features, each of
which is a row of a table of vectors:

    n-grams    of 3 and 4 characters of the lower-cased word between < and >: its spelling
    shape      its characters by class ("iOS" is "xXX", "18.2" is "dd.d"): its case and digits
    signature  SIGNATURE rows by a hash of the whole word, for words whose other features are equal

All scripts, spellings and numbers have features, so two different words have different features. A token that is no
word (an emoji, a link, a name with @) has the n-grams and the shape of a full stop: only its signature differs.
"""

import hashlib
import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from heedful.text.arrays import Ints

SIGNATURE = 4
"""Rows of a word's signature; two words share all of them with probability (SIGNATURES)^-4."""
SIGNATURES = 1024
"""Rows of the table for signatures, the first after row 0, which is padding."""
LEAST_ROWS = SIGNATURES + 2
"""Rows that a table must have: for the padding, the signatures, and at least one for n-grams and shapes."""
FEATURES = 32
"""Features of a word, including its signature. Of a longer word, n-grams in the middle are left out."""
NGRAMS = (3, 4)
CACHED_WORDS = 16_384
"""Words whose features are cached, in about 400 bytes each."""
LONGEST_SHAPE = 12
"""Characters of a shape; a run of one class counts up to four, as in spaCy."""


def features(word: str, rows: int) -> tuple[int, ...]:
    """The word's FEATURES rows in a table of `rows`, 0 for padding, the signature last."""
    spelling = word if is_word(word) else "."
    framed = f"<{spelling.lower()}>"
    grams = [framed[i : i + n] for n in NGRAMS for i in range(len(framed) - n + 1)]
    room = FEATURES - SIGNATURE - 1
    if len(grams) > room:
        grams = grams[: room // 2] + grams[-(room - room // 2) :]
    first = 1 + SIGNATURES
    spelling_rows = [
        first + zlib.crc32(gram.encode("utf-8", "surrogatepass")) % (rows - first) for gram in grams
    ]
    spelling_rows.append(first + zlib.crc32(b"shape " + shape(spelling).encode()) % (rows - first))
    digest = hashlib.blake2b(
        word.encode("utf-8", "surrogatepass"), digest_size=4 * SIGNATURE
    ).digest()
    signature = [1 + int(value) % SIGNATURES for value in np.frombuffer(digest, "<u4")]
    return (*spelling_rows, *([0] * (room + 1 - len(spelling_rows))), *signature)


def is_word(token: str) -> bool:
    """Whether it is a word or a number, and no symbol, link, e-mail address or name with @."""
    return not is_link(token) and any(map(str.isalnum, token))


def is_link(token: str) -> bool:
    """Whether it is a link, an e-mail address or a name with @."""
    return "@" in token or "://" in token or token.startswith("www.")


def shape(word: str) -> str:
    """Characters by class: X upper case, x lower case, d digit, others unchanged; runs are cut at four."""
    classes: list[str] = []
    for character in word:
        if character.isalpha():
            kind = "X" if character.isupper() else "x"
        else:
            kind = "d" if character.isdigit() else character
        if classes[-4:] != [kind] * 4:
            classes.append(kind)
    return "".join(classes[:LONGEST_SHAPE]).encode("utf-8", "replace").decode()


def matrix(words: Sequence[str], rows: int) -> Ints:
    """The features (K, FEATURES) of words."""
    content = b"".join([_row(word, rows) for word in words])
    return np.frombuffer(content, np.int32).astype(np.int64).reshape(-1, FEATURES)


@lru_cache(maxsize=CACHED_WORDS)
def _row(word: str, rows: int) -> bytes:
    """The features in 4 bytes each: tuples of 65,536 words took 78 MB a process."""
    return np.array(features(word, rows), np.int32).tobytes()
