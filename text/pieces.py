"""Words -> the WordPiece ids of a transformer, by its `tokenizer.json`.

spaCy's words remain the unit of trees, distances and attention: each word is split separately, so that a piece belongs
to one word, and a word's vector is the mean of its pieces' vectors. A sentence begins with [CLS] and ends with [SEP].
The tokenizer is Hugging Face's `tokenizers`, which does not need torch.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from heedful.text.arrays import Ints
from heedful.text.batch import Sentence
from heedful.text.plain import plain_word
from heedful.text.vocab import Vocab

MAX_PIECES = 100
"""A word of more pieces becomes a single [UNK]. WordPiece replaces words of more than 100 characters; this limit also
applies to strings that only spaCy counts as a word (a URL, Chinese without blanks)."""
CACHED_WORDS = 65_536
"""Words whose pieces are cached: a look-up takes a fiftieth of the time of splitting."""


class Pieces:
    """A tokenizer applied word by word. The transformer reads `limit` pieces, including [CLS] and [SEP].

    `text` is the content of the tokenizer's file.
    """

    composed = 0
    """No word is composed from its spelling: each has pieces."""

    def __init__(self, tokenizer: Tokenizer, limit: int) -> None:
        """Raises ValueError where the tokenizer lacks [CLS], [SEP] or [UNK], or no word fits."""
        if limit < 3:
            raise ValueError(f"{limit} pieces hold no word: [CLS] and [SEP] are two of them")
        tokenizer.no_padding()
        tokenizer.enable_truncation(limit)  # the format's place for the limit
        self.text = tokenizer.to_str(pretty=True) + "\n"
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True  # "[SEP]" in a text is three words like any other
        self._tokenizer, self.limit = tokenizer, limit
        self.cls, self.sep = self._delimiters()
        self._unknown = self._special("[UNK]")
        # A bound method would make a cycle, which outlives a reload: runtime.memory freezes the objects of the start.
        split = partial(_split, tokenizer, self._unknown, min(MAX_PIECES, limit - 2))
        self._pieces = lru_cache(maxsize=CACHED_WORDS)(split)

    def __len__(self) -> int:
        """The rows of the transformer's table: one more than the largest id."""
        return max(self._tokenizer.get_vocab().values()) + 1

    def split(self, tokens: Sequence[str]) -> tuple[Ints, Ints]:
        """The pieces of all words in order, and the number of each word's pieces (L,), at least one.

        A word that the tokenizer drops (a zero-width joiner) becomes [UNK] too.
        """
        words = [self._pieces(token) for token in tokens]
        counts = np.fromiter(map(len, words), np.int64, len(words))
        return np.fromiter(chain.from_iterable(words), np.int64, int(counts.sum())), counts

    def sentence(self, tokens: Sequence[str], heads: Ints) -> Sentence:
        """The words' pieces between [CLS] and [SEP]."""
        ids, counts = self.split(tokens)
        return Sentence(np.concatenate([[self.cls], ids, [self.sep]]), heads, counts)

    def fitting(self, tokens: Sequence[str]) -> int:
        """The number of leading words that fit into `limit` pieces."""
        _, counts = self.split(tokens)
        return int(np.searchsorted(np.cumsum(counts), self.limit - 2, side="right"))

    def word_ids(self, sentence: Sentence) -> Ints:
        """(L,) the id of each word's first piece."""
        assert sentence.pieces is not None, "a sentence of pieces"
        ids: Ints = sentence.ids[1 + np.cumsum(sentence.pieces) - sentence.pieces]
        return ids

    def known(self, sentence: Sentence) -> npt.NDArray[np.bool_]:
        """(L,) whether each word was split without [UNK]; one in which no piece begins (text.whole_text) is known."""
        assert sentence.pieces is not None, "a sentence of pieces"
        words = np.repeat(np.arange(len(sentence)), sentence.pieces)
        known = np.ones(len(sentence), bool)
        known[words[sentence.ids[1:-1] == self._unknown]] = False
        return known

    def unlisted(self, sentence: Sentence) -> int:
        """The number of words that are not `known`."""
        return len(sentence) - int(np.count_nonzero(self.known(sentence)))

    @classmethod
    def read(cls, content: bytes) -> Self:
        """The tokenizer in the bytes of a `tokenizer.json` that holds its limit. Raises ValueError."""
        try:
            tokenizer = Tokenizer.from_str(content.decode())
        except Exception as error:  # tokenizers raises nothing narrower
            raise ValueError(f"is not a tokenizer: {error}") from error
        if tokenizer.truncation is None:
            raise ValueError("has no limit of pieces (truncation)")
        return cls(tokenizer, tokenizer.truncation["max_length"])

    def save(self, path: Path) -> None:
        path.write_text(self.text, encoding="utf-8", newline="\n")

    def _delimiters(self) -> tuple[int, int]:
        """The ids of the pieces before and after a text."""
        return self._special("[CLS]"), self._special("[SEP]")

    def _special(self, piece: str) -> int:
        number = self._tokenizer.token_to_id(piece)
        if number is None:
            raise ValueError(f"the tokenizer has no {piece}")
        return int(number)


def _split(tokenizer: Tokenizer, unknown: int, limit: int, word: str) -> tuple[int, ...]:
    """A word's pieces, 1 to `limit`; else [UNK]."""
    ids = tokenizer.encode(plain_word(word), add_special_tokens=False).ids
    return tuple(ids) if 0 < len(ids) <= limit else (unknown,)


Lexicon = Vocab | Pieces
"""Turns words into ids."""
